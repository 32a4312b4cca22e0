//go:build unix

package cli

import (
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

type writeWeightsCmd struct {
	Random uint64 `required:"" placeholder:"SEED" help:"Seed; equal seeds give equal files on every machine."`
	Out    string `short:"o" type:"path" placeholder:"FILE" help:"Output file (default: this program's name with .weights)."`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// A writtenFile is one entry of the subcommand's JSON document.
type writtenFile struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"` // of the data
}

// Run writes random weights for the model, or for each rank of a partitioned one.
func (c *writeWeightsCmd) Run(m *model) error {
	targets, err := m.bin.WeightTargets(c.Out)
	if err != nil {
		return wrong(err)
	}
	for _, t := range targets {
		if err := errors.Join(destination.Check("-o", t.Path), t.Replaceable()); err != nil {
			return wrong(err)
		}
	}
	var out struct {
		Seed  uint64        `json:"seed"`
		Files []writtenFile `json:"files"`
	}
	out.Seed = c.Random
	for _, t := range targets {
		bytes, err := t.WriteRandom(c.Random)
		if err != nil {
			return err
		}
		out.Files = append(out.Files, writtenFile{t.Path, bytes})
		if !c.JSON {
			fmt.Fprintf(m.Stdout, "%s: %.1f MB, random weights, seed %d\n", t.Path, float64(bytes)/1e6, c.Random)
		}
	}
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	return nil
}

// warnRandom tells the user that results mean nothing. f is nil for a partitioned model,
// whose files named determines.
func (m *model) warnRandom(f *binary.Weights, named string) {
	var seed uint64
	var random bool
	if f != nil {
		seed, random = f.Random()
	} else {
		seed, random = m.bin.RandomWeights(named)
	}
	if random {
		fmt.Fprintf(m.Stderr, "note: %s has random weights (seed %d)\n", m.manifest.Name, seed)
	}
}
