//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/binary"
)

type verifyCmd struct {
	Weights string `placeholder:"FILE" type:"path" help:"Weights file (default: the embedded weights, or this program's name with .weights)."`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// A verifiedFile is one entry of the subcommand's JSON document.
type verifiedFile struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"` // of the data
	Expected string `json:"expected_sha256"`
	Found    string `json:"found_sha256"`
	OK       bool   `json:"ok"`
}

// Run compares the weights with their hash.
func (c *verifyCmd) Run(ctx context.Context, m *model) error {
	files, err := m.bin.OpenWeights(c.Weights)
	if err != nil {
		return err
	}
	var out struct {
		OK    bool           `json:"ok"`
		Files []verifiedFile `json:"files"`
	}
	var failed error
	for _, f := range files {
		defer f.Close()
		v, err := c.verify(ctx, m, f)
		var damaged *packed.DamagedError
		switch {
		case errors.As(err, &damaged):
			v.Found = damaged.Found
			failed = errors.Join(failed, err)
		case err != nil:
			return err
		default:
			v.Found, v.OK = v.Expected, true
		}
		out.Files = append(out.Files, v)
		if !c.JSON && v.OK {
			fmt.Fprintf(m.Stdout, "%s: %.1f MB, sha256 %s: as packed\n", v.File, float64(v.Bytes)/1e6, v.Found)
		}
	}
	if out.OK = failed == nil; c.JSON {
		if err := writeJSON(m.Stdout, out); err != nil {
			return err
		}
	}
	return failed
}

func (c *verifyCmd) verify(ctx context.Context, m *model, f *binary.Weights) (verifiedFile, error) {
	const mb = 1 << 20
	p := newProgress(m.Stderr, "MB of "+f.Name(), int(f.Bytes()/mb))
	defer p.end()
	err := f.Verify(ctx, func(done int64) { p.step(int(done / mb)) })
	return verifiedFile{File: f.Name(), Bytes: f.Bytes(), Expected: f.SHA256()}, err
}
