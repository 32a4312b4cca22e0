//go:build unix

// Command iflowc compiles a model spec into a binary that runs the model. Each
// subcommand is one file; docs/architecture.md describes the whole.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/interrupt"
	"github.com/iflowc/iflowc/runtime/kit/lists"
	"github.com/iflowc/iflowc/runtime/kit/printable"
	"github.com/iflowc/iflowc/spec"
)

// Exit codes, on which users rely.
const (
	exitFailed = 1 // the work failed
	exitUsage  = 2 // the call or a file was wrong
)

type commands struct {
	Compile    compileCmd    `cmd:"" help:"Compile a model into a binary."`
	Run        runCmd        `cmd:"" help:"Compile (cached), then generate text or chat."`
	Chat       chatCmd       `cmd:"" help:"Compile (cached), then chat in the terminal."`
	Serve      serveCmd      `cmd:"" help:"Compile (cached), then serve an OpenAI-compatible HTTP API."`
	List       listCmd       `cmd:"" help:"List the model library and which weights are on this machine."`
	IR         irCmd         `cmd:"" name:"ir" help:"Print the IR: as lowered, after a pass, or at all stages."`
	Modules    modulesCmd    `cmd:"" help:"List the modules that models are made of, or print one."`
	Opt        optCmd        `cmd:"" help:"Run passes on IR text."`
	Check      checkCmd      `cmd:"" help:"Check whether a model is supported and how much memory it needs; reads no weights."`
	Import     importCmd     `cmd:"" help:"Write a model spec for a model folder or GGUF file."`
	Explain    explainCmd    `cmd:"" help:"Explain which implementation is chosen for each matmul, and why."`
	Pull       pullCmd       `cmd:"" help:"Fetch a model from the Hugging Face hub."`
	Profile    profileCmd    `cmd:"" help:"Measure a model's matmuls on this machine and write a device profile."`
	Diff       diffCmd       `cmd:"" help:"Compare a model with hidden states from transformers, layer by layer."`
	Schema     schemaCmd     `cmd:"" help:"Print the JSON Schema of model specs, for editors."`
	View       viewCmd       `cmd:"" help:"Open an HTML report of the compilation: IR, graph, weights, memory plan, kernel choices, source, profile."`
	Doctor     doctorCmd     `cmd:"" help:"Check for compilers, GPUs and libraries, and say how to get what is missing."`
	Clean      cleanCmd      `cmd:"" help:"Remove entries from the build cache."`
	Completion completionCmd `cmd:"" help:"Print a shell completion script: bash, zsh or fish."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() {
	ctx, stop := interrupt.Context(context.Background())
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	args, after := cutRest(args)
	parser, err := newParser(kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(after))
	if err != nil {
		panic("bug: " + err.Error())
	}
	k, err := parser.Parse(args)
	if err != nil {
		var pe *kong.ParseError
		if errors.As(err, &pe) && len(args) == 0 {
			pe.Context.PrintUsage(false)
		}
		fmt.Fprintln(os.Stderr, "iflowc:", explainCall(err))
		return exitUsage
	}
	if err = lists.Check(k); err != nil {
		err = usageError{err}
	} else {
		err = runSubcommand(k)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		stopped := interrupt.Cause(ctx)
		fmt.Fprintln(os.Stderr, "iflowc:", stopped)
		return stopped.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "iflowc:", printable.Message(err.Error()))
	fmt.Fprint(os.Stderr, caret(err.Error()), afterPull(err, os.Args[1:]))
	if errors.As(err, &usageError{}) || errors.As(err, &compiler.InputError{}) {
		return exitUsage
	}
	return exitFailed
}

// afterPull returns the commands to run if files of the model are missing: the
// pull, and then the same call.
func afterPull(err error, args []string) string {
	var missing *spec.Error
	if !errors.As(err, &missing) || missing.Pull == nil {
		return ""
	}
	return fmt.Sprintf("\n  iflowc pull %s\n  iflowc %s\n", shellWords(missing.Pull), shellWords(args))
}

// shellWords quotes words for a shell.
func shellWords(words []string) string {
	quoted := slices.Clone(words)
	for i, w := range quoted {
		if w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;()<>*?[]#~!{}\\") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// newParser returns the parser of iflowc's command line.
func newParser(options ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(&commands{}, append([]kong.Option{
		kong.Name("iflowc"),
		kong.Description("A compiler for transformer inference: ten lines of YAML in, one binary out."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": version(), "sizes": strings.Join(spec.SizeNames(), " "), "types": strings.Join(spec.TypeNames(), " ")},
	}, options...)...)
	if err != nil {
		return nil, err
	}
	return parser, graft(parser.Model)
}

// runSubcommand runs a subcommand and returns a panic as an error: a broken
// file produces one line, not a stack trace.
func runSubcommand(k *kong.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("bug in iflowc %s: %v (IFLOWC_TRACE=1 shows where); please report it with the model spec", compiler.Version(), r)
			if os.Getenv("IFLOWC_TRACE") != "" {
				debug.PrintStack()
			}
		}
	}()
	return k.Run()
}
