//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/cli"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/runtime/kit/usage"
)

// The subcommands that compile a model into the cache and become its binary.
// They accept the flags of compile and those of the binary's subcommands of the
// same names (see graft).
type (
	runCmd   struct{ compileFlags }
	chatCmd  struct{ compileFlags }
	serveCmd struct{ compileFlags }
)

// launches names, for each subcommand that becomes a binary, the binary's
// subcommands that it may start.
var launches = map[string][]string{"run": {"generate", "chat"}, "chat": {"chat"}, "serve": {"serve"}}

// binaryFlags marks the flags of the binary's subcommands.
var binaryFlags = &kong.Group{Key: "binary", Title: "Flags of the model's binary:"}

// graft adds the flags of the binary's subcommands to those of iflowc, so that
// help and completion show them and a wrong call fails before the compile. A
// flag of compile hides one with the same name.
func graft(app *kong.Application) error {
	binary, err := cli.Grammar()
	if err != nil {
		return err
	}
	for _, node := range app.Children {
		for _, name := range launches[node.Name] {
			for _, f := range child(binary.Model.Node, name).Flags {
				if !slices.ContainsFunc(node.Flags, func(have *kong.Flag) bool { return have.Name == f.Name }) {
					own := *f // two subcommands may share it
					own.Group = binaryFlags
					node.Flags = append(node.Flags, &own)
				}
			}
		}
	}
	return nil
}

// child returns the subcommand of a node that has a name.
func child(n *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == name })
	if i < 0 {
		panic("bug: no subcommand " + name)
	}
	return n.Children[i]
}

// rest are the arguments after "--" of a subcommand that becomes a binary. They
// go to the binary unchanged.
type rest []string

// cutRest separates them from the arguments that iflowc parses.
func cutRest(args []string) ([]string, rest) {
	i := slices.Index(args, "--")
	if i <= 0 || launches[args[0]] == nil {
		return args, nil
	}
	return args[:i], args[i+1:]
}

// explainCall words the error of a wrong call. If the subcommand is one of
// compiled models, the error says so.
func explainCall(err error) error {
	var parse *kong.ParseError
	binary, grammarErr := cli.Grammar()
	if grammarErr != nil || !errors.As(err, &parse) || len(parse.Context.Args) == 0 || parse.Context.Selected() != nil {
		return usage.Explain(err)
	}
	name := parse.Context.Args[0]
	if slices.ContainsFunc(binary.Model.Children, func(c *kong.Node) bool { return c.Name == name && !c.Hidden }) {
		return fmt.Errorf("%s is a subcommand of compiled models: iflowc compile SPEC -o BIN, then ./BIN %s", name, name)
	}
	return usage.Explain(err)
}

// Run generates text, or without a prompt on a terminal starts a chat.
func (c *runCmd) Run(ctx context.Context, k *kong.Context, after rest) error {
	given := func(names ...string) bool {
		return slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && slices.Contains(names, p.Flag.Name) })
	}
	switch {
	case given("prompt", "file", "ids") || len(after) > 0:
		return become(ctx, &c.compileFlags, k, "generate", after)
	case term.IsTerminal(int(os.Stdin.Fd())):
		return become(ctx, &c.compileFlags, k, "chat", after)
	}
	return usageError{errors.New("no prompt given; use -p TEXT, -f FILE or --ids 1,2,3 (on a terminal, run starts a chat without one)")}
}

// Run starts a chat.
func (c *chatCmd) Run(ctx context.Context, k *kong.Context, after rest) error {
	return become(ctx, &c.compileFlags, k, "chat", after)
}

// Run starts a server.
func (c *serveCmd) Run(ctx context.Context, k *kong.Context, after rest) error {
	return become(ctx, &c.compileFlags, k, "serve", after)
}

// become compiles the model into the cache and becomes its binary, with the
// binary's flags of the call.
func become(ctx context.Context, c *compileFlags, k *kong.Context, subcommand string, after rest) error {
	words, err := binaryWords(k, subcommand)
	if err != nil {
		return usageError{err}
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
	return syscall.Exec(bin, slices.Concat([]string{bin, subcommand}, words, after), os.Environ())
}

// binaryWords returns the binary's flags among the arguments of a call, with
// their values, unchanged. Kong has accepted the call.
func binaryWords(k *kong.Context, subcommand string) (words []string, err error) {
	binary, err := cli.Grammar()
	if err != nil {
		return nil, err
	}
	takes := child(binary.Model.Node, subcommand).Flags
	node := k.Selected()
	for i := 0; i < len(k.Args); i++ {
		word := k.Args[i]
		f, separate := flagOf(node, word)
		if f == nil { // the subcommand or the model
			continue
		}
		value := i
		if separate {
			i++
		}
		if f.Group != binaryFlags {
			continue
		}
		if !slices.ContainsFunc(takes, func(t *kong.Flag) bool { return t.Name == f.Name }) {
			return nil, fmt.Errorf("%s: not a flag of the binary's %s, which %s starts here", strings.SplitN(word, "=", 2)[0], subcommand, node.Name)
		}
		switch f.Name { // checked before compiling
		case "file":
			if _, err := os.Stat(f.Target.String()); err != nil {
				return nil, fmt.Errorf("-f: %w", err)
			}
		case "trace":
			if err := destination.Check("--trace", f.Target.String()); err != nil {
				return nil, err
			}
		}
		words = append(words, k.Args[value:i+1]...)
	}
	return words, nil
}

// flagOf returns the flag of an argument, and whether the next argument is its
// value; nil if the argument is not a flag.
func flagOf(n *kong.Node, word string) (f *kong.Flag, separate bool) {
	name, long := strings.CutPrefix(word, "--")
	name, _, valued := strings.Cut(name, "=")
	for _, f := range n.Flags {
		switch {
		case long && f.Name == name:
			return f, !valued && !f.IsBool() && !f.IsCounter()
		case !long && len(word) > 1 && word[0] == '-' && rune(word[1]) == f.Short:
			return f, len(word) == 2 && !f.IsBool() && !f.IsCounter()
		}
	}
	return nil, false
}

// Help shows the shortest form.
func (runCmd) Help() string {
	return `Compile a model, unless that was done before, and run it. Flags after -- go to the binary as they are.

Examples:

  iflowc run demo -p "Once upon a time"
  iflowc run model.gguf -p "The capital of France is" -n 16 --temp 0
  iflowc run demo                             a chat, on a terminal`
}

// Help shows a chat with a smaller model.
func (chatCmd) Help() string {
	return `Compile a model, unless that was done before, and start a chat. Flags after -- go to the binary as they are.

Examples:

  iflowc chat demo
  iflowc chat Llama-3.2-1B-Instruct/ --quant q4 --temp 0.7`
}

// Help shows how to start a server and send it a request.
func (serveCmd) Help() string {
	return `Compile a model, unless that was done before, and start a server. Flags after -- go to the binary as they are.

Examples:

  iflowc serve demo --port 8081
  iflowc serve Llama-3.2-1B-Instruct/ --quant q8 -- --profile llama.profile
  curl http://127.0.0.1:8081/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'`
}
