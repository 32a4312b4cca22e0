// Package runtime holds the sources of what a per-model binary is made of,
// which iflowc carries: a compiled model is a Go program of its own, built from
// them without network and without a checkout. The folders below are the
// binary's packages, in the groups of docs/architecture.md; nothing of the
// compiler is among what they import.
package runtime

import "embed"

// GoVersion is the version of Go that the sources ask for, as in go.mod.
const GoVersion = "1.26.0"

// Sources are the files of every package below, by their path in this folder.
// Their tests are among them, because patterns cannot leave files out; the code
// generator does.
//
//go:embed */*.go */*/*.go http/page/*.html http/page/*.css http/page/*.js kit/plot/glyphs.txt
var Sources embed.FS
