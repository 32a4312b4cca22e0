// Package archtest holds the repository to its own rules: which package may
// import which, how long files and functions are, what never appears. It has
// tests only; docs/architecture.md explains the rules.
package archtest
