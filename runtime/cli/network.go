//go:build unix

package cli

import (
	"fmt"
	"slices"
	"strings"
)

// The network kinds of manifest.Network, and the graph that processes whole
// texts.
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

// types parses the token types; nil if there are none.
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
	kinds := max(m.manifest.TokenTypes, 1)
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

// graphWith returns the name of the first graph with an output that a
// subcommand needs.
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
	return "", wrong(fmt.Errorf("%s is %s with the output %s: %s needs a model with the output %s",
		m.manifest.Name, article(m.manifest.Network), strings.Join(all, " and "), subcommand, output))
}
