// Package archtest holds the repository to its own rules: which package may
// import which, how long files and functions are, what never appears. Its tests
// do; docs/architecture.md explains the rules, with a picture of the table of
// groups that tools/gen/archdoc draws.
package archtest
