// Package runtime embeds the sources of per-model binaries. A compiled model is a
// Go program, which iflowc builds from them without network or checkout. The
// folders below are the binary's packages, in the groups of docs/architecture.md.
// They import nothing of the compiler.
package runtime

import "embed"

// GoVersion is the Go version of the sources, as in go.mod.
const GoVersion = "1.26.0"

// Sources has the files of every package below, by their path in this folder.
// Patterns cannot exclude tests; the code generator omits them.
//
//go:embed */*.go */*/*.go http/page/*.html http/page/*.css http/page/*.js kit/plot/glyphs.txt
var Sources embed.FS
