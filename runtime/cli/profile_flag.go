//go:build unix

package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// A profileFlag is --profile FILE, a dispatch profile, or in bench --profile
// alone: the table of where the time goes.
type profileFlag struct {
	File string
	Ops  bool
}

// Decode reads the file name if there is one.
func (p *profileFlag) Decode(ctx *kong.DecodeContext) error {
	next := ctx.Scan.Peek()
	if text, ok := next.Value.(string); next.IsEOL() || !next.IsValue() && ok && strings.HasPrefix(text, "-") {
		p.Ops = true
		return nil
	}
	var file string
	if err := ctx.Scan.PopValueInto("file", &file); err != nil {
		return err
	}
	p.File = kong.ExpandPath(file)
	return nil
}
