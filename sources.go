// Package iflowc holds the sources of the runtime, which iflowc carries: a
// compiled model is a Go program of its own, built from them without network
// and without a checkout. Everything else is in the folders; start with
// docs/architecture.md.
package iflowc

import "embed"

// Sources are the files of every package that a per-model binary may need,
// by their path in this module. Their tests are among them, because patterns
// cannot leave files out; the code generator does.
//
//go:embed go.mod ir/spelling/*.go ir/tensor/*.go runtime/*/*.go runtime/*/*/*.go runtime/http/page/page.html runtime/kit/plot/glyphs.txt
var Sources embed.FS
