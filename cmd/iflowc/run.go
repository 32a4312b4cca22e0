package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/iflowc/iflowc/codegen/compiler"
	"golang.org/x/term"
)

type runCmd struct {
	compileFlags
	Prompt    string   `short:"p" help:"Text to continue."`
	File      string   `short:"f" help:"File with the text to continue." type:"path" placeholder:"FILE"`
	IDs       string   `name:"ids" help:"Token ids to continue." placeholder:"1,2,3"`
	N         int      `short:"n" help:"Maximum tokens to generate." default:"128"`
	Temp      *float64 `help:"Temperature; 0 is greedy decoding." placeholder:"T"`
	TopK      *int     `help:"Sample from the K most probable tokens." placeholder:"K"`
	TopP      *float64 `help:"Nucleus sampling: sample from the most probable tokens that make up this probability." placeholder:"P"`
	MinP      *float64 `help:"Leave out tokens below this fraction of the most probable one's probability." placeholder:"P"`
	Seed      *uint64  `help:"Seed of the sampler." placeholder:"S"`
	IgnoreEOS bool     `name:"ignore-eos" help:"Do not stop at the end token."`
	System    string   `help:"What the model is told before a chat." placeholder:"TEXT"`
	Template  string   `help:"Chat template: a built-in one's name, a file, or its text." placeholder:"NAME|FILE|TEXT"`
	Threads   int      `help:"Threads (default: one a core)."`
	JSON      bool     `name:"json" help:"Print one JSON document."`
}

// Run compiles the model into the cache and becomes its binary.
func (c *runCmd) Run(ctx context.Context) error {
	talk := c.Prompt == "" && c.File == "" && c.IDs == ""
	if talk && !term.IsTerminal(int(os.Stdin.Fd())) {
		return usageError{fmt.Errorf("run: give a prompt: -p TEXT, -f FILE or --ids 1,2,3; on a terminal, none starts a chat")}
	}
	if c.File != "" { // before compiling
		if _, err := os.Stat(c.File); err != nil {
			return usageError{fmt.Errorf("-f: %w", err)}
		}
	}
	bar := newProgress()
	defer bar.done()
	o := c.options()
	o.Progress = bar.build
	bin, err := compiler.Cached(ctx, c.Spec, o)
	if err != nil {
		return err
	}
	bar.done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	args := append([]string{bin, "generate"}, c.arguments()...)
	if talk {
		args = append([]string{bin, "chat"}, c.chatArguments()...)
	}
	return syscall.Exec(bin, args, os.Environ())
}

// arguments are those of the binary's subcommand generate.
func (c *runCmd) arguments() []string {
	args := append([]string{"-n", strconv.Itoa(c.N)}, c.sampling()...)
	add := func(ok bool, words ...string) {
		if ok {
			args = append(args, words...)
		}
	}
	add(c.Prompt != "", "-p", c.Prompt)
	add(c.File != "", "-f", c.File)
	add(c.IDs != "", "--ids", c.IDs)
	add(c.IgnoreEOS, "--ignore-eos")
	add(c.JSON, "--json")
	return args
}

// defaultLength is how many tokens generate gives unless -n says otherwise; an
// answer of a chat is then as long as it gets.
const defaultLength = 128

// chatArguments are those of the binary's subcommand chat.
func (c *runCmd) chatArguments() []string {
	args := c.sampling()
	if c.N != defaultLength {
		args = append(args, "-n", strconv.Itoa(c.N))
	}
	if c.System != "" {
		args = append(args, "--system", c.System)
	}
	if c.Template != "" {
		args = append(args, "--template", c.Template)
	}
	return args
}

// sampling are the arguments that both subcommands have.
func (c *runCmd) sampling() (args []string) {
	add := func(ok bool, words ...string) {
		if ok {
			args = append(args, words...)
		}
	}
	if c.Temp != nil {
		add(true, "--temp", strconv.FormatFloat(*c.Temp, 'g', -1, 64))
	}
	if c.TopK != nil {
		add(true, "--top-k", strconv.Itoa(*c.TopK))
	}
	if c.TopP != nil {
		add(true, "--top-p", strconv.FormatFloat(*c.TopP, 'g', -1, 64))
	}
	if c.MinP != nil {
		add(true, "--min-p", strconv.FormatFloat(*c.MinP, 'g', -1, 64))
	}
	if c.Seed != nil {
		add(true, "--seed", strconv.FormatUint(*c.Seed, 10))
	}
	add(c.Threads > 0, "--threads", strconv.Itoa(c.Threads))
	return args
}
