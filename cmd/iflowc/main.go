// Command iflowc compiles a model specification into a binary that runs the
// model. Each subcommand is one file here; docs/architecture.md is the map.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/interrupt"
	"github.com/iflowc/iflowc/runtime/kit/lists"
)

// Exit codes, as users rely on them.
const (
	exitFailed = 1 // the work failed
	exitUsage  = 2 // the call or a file was wrong
)

type commands struct {
	Compile    compileCmd    `cmd:"" help:"Make the per-model binary."`
	Run        runCmd        `cmd:"" help:"Compile (cached), then generate text."`
	IR         irCmd         `cmd:"" name:"ir" help:"Print the IR: as lowered, after a pass, or all stages."`
	Opt        optCmd        `cmd:"" help:"Run passes on IR text."`
	Check      checkCmd      `cmd:"" help:"Say whether a model is supported, and the memory it needs; reads no weights."`
	Import     importCmd     `cmd:"" help:"Write a specification for a model folder or GGUF file."`
	Explain    explainCmd    `cmd:"" help:"Say, for each matmul, which implementations there are and which is chosen."`
	Pull       pullCmd       `cmd:"" help:"Fetch a model folder from the Hugging Face hub or one like it."`
	Profile    profileCmd    `cmd:"" help:"Measure the implementations of a model's matmuls on this machine and write its profile."`
	Diff       diffCmd       `cmd:"" help:"Compare a model with hidden states of transformers, layer by layer."`
	Schema     schemaCmd     `cmd:"" help:"Print the JSON Schema of the specification, for editors."`
	View       viewCmd       `cmd:"" help:"Open an HTML report of the compilation: IR, graph, weights, memory plan, kernel choices, source, profile."`
	Doctor     doctorCmd     `cmd:"" help:"Say which tools were found, what is missing and how to get it."`
	Clean      cleanCmd      `cmd:"" help:"Remove from the build cache what can be made again."`
	Completion completionCmd `cmd:"" help:"Print the script that makes a shell complete this command line: bash, zsh or fish."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := interrupt.Context(context.Background())
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	var c commands
	parser, err := kong.New(&c, kong.Name("iflowc"),
		kong.Description("A compiler for transformer inference: ten lines of YAML in, one binary out."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic("bug: " + err.Error())
	}
	k, err := parser.Parse(args)
	if err != nil {
		var pe *kong.ParseError
		if errors.As(err, &pe) && len(args) == 0 {
			pe.Context.PrintUsage(false)
		}
		fmt.Fprintln(os.Stderr, "iflowc:", err)
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
	fmt.Fprintln(os.Stderr, "iflowc:", err)
	fmt.Fprint(os.Stderr, caret(err.Error()))
	if errors.As(err, &usageError{}) || errors.As(err, &compiler.InputError{}) {
		return exitUsage
	}
	return exitFailed
}

// runSubcommand turns a panic into an error: whatever a file holds, the answer is one
// line, not a trace.
func runSubcommand(k *kong.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("bug in iflowc %s: %v (IFLOWC_TRACE=1 shows where); please report it with the specification", compiler.Version(), r)
			if os.Getenv("IFLOWC_TRACE") != "" {
				debug.PrintStack()
			}
		}
	}()
	return k.Run()
}
