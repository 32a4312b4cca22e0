// Package archtest tests the repository's own rules: imports between packages,
// lengths of files and functions, and forbidden constructs.
// docs/architecture.md explains the rules and shows the table of groups, which
// tools/gen/archdoc draws.
package archtest
