// Package passes rewrites modules. pipeline.go is the one visible list; each
// pass is one file, one row there and one folder of testdata. A pass records
// meaning in ops and attributes and decisions in annotations; it never spells code.
package passes
