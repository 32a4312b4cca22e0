//go:build unix

package cli

import (
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// A limited subcommand works only with some models. If suits returns an error,
// help omits the subcommand and a call fails with the error.
type limited interface {
	suits(m *model) error
}

// A special subcommand is one that help omits for models that need a flag to
// run it.
type special interface {
	unlisted(m *model) bool
}

// suited returns an error if the model cannot run a subcommand.
func (m *model) suited(n *kong.Node) error {
	if n.Target.Kind() != reflect.Struct || !n.Target.CanAddr() {
		return nil
	}
	if c, ok := n.Target.Addr().Interface().(limited); ok {
		return c.suits(m)
	}
	return nil
}

// hideUnsuited removes subcommands that the model cannot run from help and
// completion.
func (m *model) hideUnsuited(n *kong.Node) {
	for _, c := range n.Children {
		c.Hidden = c.Hidden || m.suited(c) != nil || m.unlisted(c)
		m.hideUnsuited(c)
	}
}

// unlisted reports whether help omits a subcommand that can run.
func (m *model) unlisted(n *kong.Node) bool {
	if n.Target.Kind() != reflect.Struct || !n.Target.CanAddr() {
		return false
	}
	c, ok := n.Target.Addr().Interface().(special)
	return ok && c.unlisted(m)
}

const notDecoder = "use translate for an encoder-decoder, embed or hidden for an encoder"

func (*generateCmd) suits(m *model) error { return m.mustBe(decoderOnly, "generate", notDecoder) }

func (*chatCmd) suits(m *model) error { return m.mustBe(decoderOnly, "chat", notDecoder) }

// unlisted: a chat without a chat template of the model needs --template.
func (*chatCmd) unlisted(m *model) bool {
	return m.manifest.Template == "" || len(m.embedded.Tokenizer) == 0
}

func (*translateCmd) suits(m *model) error {
	return m.mustBe(encoderDecoder, "translate", "use generate for a decoder, embed or hidden for an encoder")
}

func (*perplexityCmd) suits(m *model) error {
	return m.mustBe(decoderOnly, "perplexity", "only a decoder predicts the next token")
}

func (*calibrateCmd) suits(m *model) error {
	return m.mustBe(decoderOnly, "calibrate", "other models are quantized without calibration")
}

func (*benchCmd) suits(m *model) error {
	if m.manifest.Network == encoderOnly {
		return nil
	}
	return m.mustBe(decoderOnly, "bench", "encoder-decoders have no benchmark yet")
}

func (*logitsCmd) suits(m *model) error { return m.mustGive("logits", "logits") }

func (*hiddenCmd) suits(m *model) error { return m.mustGive("hidden", "hidden") }

func (*embedCmd) suits(m *model) error { return m.mustGive("embed", "hidden") }

func (*fillCmd) suits(m *model) error {
	graph, err := m.graphWith("fill", "logits")
	if err == nil && graph != encodeGraph {
		err = wrong(fmt.Errorf("%s is %s: fill needs an encoder with a masked-LM head", m.manifest.Name, article(m.manifest.Network)))
	}
	return err
}

func (*classifyCmd) suits(m *model) error {
	if err := m.mustGive("classify", m.judged()); err != nil {
		return err
	}
	if m.manifest.LabelsTokens {
		return wrong(fmt.Errorf("%s labels tokens, classify labels texts", m.manifest.Name))
	}
	return nil
}

func (*tokenizeCmd) suits(m *model) error { return m.mustHaveTokenizer() }

func (*detokenizeCmd) suits(m *model) error { return m.mustHaveTokenizer() }

// mustHaveTokenizer returns an error if the model has no tokenizer.
func (m *model) mustHaveTokenizer() error {
	if len(m.embedded.Tokenizer) > 0 {
		return nil
	}
	_, err := m.tokenizer()
	return err
}

// mustGive returns an error if the model lacks an output that a subcommand
// needs.
func (m *model) mustGive(subcommand, output string) error {
	_, err := m.graphWith(subcommand, output)
	return err
}

// mustBe returns an error if the model is another kind of network.
func (m *model) mustBe(network, subcommand, instead string) error {
	if m.manifest.Network == network {
		return nil
	}
	return wrong(fmt.Errorf("%s is %s, %s needs %s; %s", m.manifest.Name, article(m.manifest.Network), subcommand, article(network), instead))
}
