//go:build unix

package cli

import (
	"fmt"
	"slices"
	"strings"
)

// The network kinds of manifest.Network, and the graph that gets texts whole.
const (
	decoderOnly    = "decoder_only"
	encoderOnly    = "encoder_only"
	encoderDecoder = "encoder_decoder"
	encodeGraph    = "encode"
)

// encoderFlags are the flags of subcommands that run an encoder.
type encoderFlags struct {
	TokenTypes string `name:"token-type-ids" placeholder:"0,0,1" help:"Token type ids, for encoders that have them (default: 0)."`
}

// types reads the token types, nil when none are given.
func (m *model) types(f *encoderFlags, tokens int) ([]int32, error) {
	if f.TokenTypes == "" {
		return nil, nil
	}
	types, err := parseIDs(f.TokenTypes)
	if err != nil {
		return nil, err
	}
	if len(types) != tokens {
		return nil, wrong(fmt.Errorf("--token-type-ids lists %d types for %d tokens", len(types), tokens))
	}
	kinds := m.tokenTypes()
	for _, t := range types {
		if int(t) >= kinds {
			return nil, wrong(fmt.Errorf("token type %d: %s has %d of them, from 0 on", t, m.manifest.Name, kinds))
		}
	}
	if kinds == 1 {
		return nil, nil
	}
	return types, nil
}

// tokenTypes is how many token types the model tells apart.
func (m *model) tokenTypes() int {
	for _, w := range m.manifest.Weights {
		if w.Name == "type_embed" {
			return w.Rows
		}
	}
	return 1
}

// graphWith names the first graph that has an output, which a subcommand needs.
func (m *model) graphWith(subcommand, output string) (string, error) {
	var all []string
	for _, g := range m.manifest.Graphs {
		for _, o := range g.Outputs {
			if o.Name == output {
				return g.Name, nil
			}
			if !slices.Contains(all, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return "", wrong(fmt.Errorf("%s is %s that gives %s: %s needs a model that gives %s",
		m.manifest.Name, article(m.manifest.Network), strings.Join(all, " and "), subcommand, output))
}
