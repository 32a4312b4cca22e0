//go:build unix

package cli

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

// commands is the grammar of the command line.
type commands struct {
	Generate     generateCmd     `cmd:"" help:"Continue a text."`
	Chat         chatCmd         `cmd:"" help:"Chat in the terminal."`
	Logits       logitsCmd       `cmd:"" help:"Print the logits of a prompt's last tokens, as JSON."`
	Hidden       hiddenCmd       `cmd:"" help:"Print the final hidden states of a prompt, as JSON."`
	Embed        embedCmd        `cmd:"" help:"Print the embeddings of texts, as JSON."`
	Translate    translateCmd    `cmd:"" help:"Translate or transform texts with an encoder-decoder."`
	Fill         fillCmd         `cmd:"" help:"Predict the masked tokens of a text."`
	Classify     classifyCmd     `cmd:"" help:"Print the probability of each label of a text."`
	Tokenize     tokenizeCmd     `cmd:"" help:"Print a text's tokens, as JSON."`
	Detokenize   detokenizeCmd   `cmd:"" help:"Print the text of tokens, as JSON."`
	Perplexity   perplexityCmd   `cmd:"" help:"Measure the perplexity of a text file."`
	Calibrate    calibrateCmd    `cmd:"" help:"Collect statistics of a text for quantization, for iflowc compile --importance."`
	Bench        benchCmds       `cmd:"" help:"Measure the speed of the model or of a running server."`
	Serve        serveCmd        `cmd:"" help:"Serve an OpenAI-compatible HTTP API."`
	Tune         tuneCmd         `cmd:"" help:"Measure the fastest implementations on this machine; later starts use them."`
	Info         infoCmd         `cmd:"" help:"Print what this binary contains."`
	Verify       verifyCmd       `cmd:"" help:"Check the weights against their hash."`
	WriteWeights writeWeightsCmd `cmd:"" name:"weights" help:"Write a weights file with random values, to measure the speed of a model without its weights."`
	Completion   completionCmd   `cmd:"" help:"Print a shell completion script: bash, zsh or fish."`
	Version      versionCmd      `cmd:"" help:"Print the model's and the compiler's version."`
	Embedded     embeddedCmd     `cmd:"" hidden:""`
	Sensitivity  sensitivityCmd  `cmd:"" hidden:""`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the model's and the compiler's version."`
}

// engineFlags are the flags of every subcommand that runs the model.
type engineFlags struct {
	Threads  int           `placeholder:"N" help:"Threads (default: one per physical core)."`
	Weights  string        `placeholder:"FILE" type:"path" help:"Weights file (default: this program's name with .weights)."`
	Profile  string        `placeholder:"FILE" type:"path" help:"Dispatch profile (default: this program's name with .profile, if it exists)."`
	Trace    string        `placeholder:"FILE" type:"path" help:"Write a trace of every thread and step, for Perfetto or chrome://tracing."`
	Device   string        `placeholder:"NAME" help:"Device: cpu, cuda or cuda:N (default: a GPU if the binary has code for it)."`
	Pin      bool          `help:"Pin threads to cores; faster only on an otherwise idle machine."`
	Patience time.Duration `name:"rank-timeout" placeholder:"6s" help:"How long a rank may be silent in a step before the others give up."`
	LoRA     []string      `name:"lora" placeholder:"[NAME=]PATH" help:"LoRA adapter, a PEFT folder or a GGUF file; several for serve and chat."`
	ISA      string        `name:"isa" placeholder:"NAME" help:"Instruction set (default: the best of this CPU)."`
}

func (f *engineFlags) check() error {
	if f.Threads < 0 || f.Threads > 4096 {
		return wrong(fmt.Errorf("--threads %d: expected a number between 1 and 4096", f.Threads))
	}
	if f.Trace != "" {
		return wrong(destination.Check("--trace", f.Trace))
	}
	return nil
}

// describe returns the first line of the help.
func describe(m *manifest.Manifest) string {
	return fmt.Sprintf("%s: %s with %s parameters, compiled by iflowc %s.", m.Name, article(m.Network), count(m.Params), m.Compiler)
}

// article returns a network kind with its article.
func article(network string) string {
	switch network {
	case "encoder_only":
		return "an encoder"
	case "encoder_decoder":
		return "an encoder-decoder"
	}
	return "a decoder"
}

// count shortens a number of parameters: 134.5M.
func count(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprint(n)
}
