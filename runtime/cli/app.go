//go:build unix

// Package cli is the command line of a per-model binary, with one file per
// subcommand, over runtime/engine. The binary's main package embeds the model
// and calls Main.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/kit/interrupt"
	"github.com/iflowc/iflowc/runtime/kit/lists"
	"github.com/iflowc/iflowc/runtime/kit/printable"
	"github.com/iflowc/iflowc/runtime/kit/usage"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// Embedded holds the files that the compiler put into the binary.
type Embedded = binary.Embedded

// Exit codes of the command line's contract.
const (
	exitOK     = 0
	exitFailed = 1
	exitWrong  = 2 // the call or a file was wrong
)

// Main runs the process's command line and exits.
func Main(e Embedded) {
	start := time.Now()
	ctx, stop := interrupt.Context(context.Background())
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	code := Run(underLauncher(ctx), e, Process{
		Args: os.Args[1:], Program: program, Start: start, Startup: cpu.AtStartup(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	os.Exit(code)
}

// A Process holds the arguments, files and start time of a command line.
type Process struct {
	Args           []string
	Program        string    // path of the binary; its weights are beside it
	Start          time.Time // for load times
	Startup        cpu.Startup
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	job *ranks.Job // nil: the process runs all ranks
}

// say prints a line about the process's state.
func (p *Process) say(format string, args ...any) {
	fmt.Fprintln(p.Stderr, printable.Message(fmt.Sprintf(format, args...)))
}

// Run runs one command line and returns the exit code.
func Run(ctx context.Context, e Embedded, p Process) int {
	err := run(ctx, e, &p)
	code := p.report(ctx, err)
	p.abandon(err, code)
	return code
}

// report prints the error of a command line and returns its exit code.
func (p *Process) report(ctx context.Context, err error) int {
	var done exited
	var wrong wrongError
	var stopped interrupt.Stopped
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = interrupt.Cause(ctx)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &done):
		return int(done)
	case errors.As(err, &stopped):
		fmt.Fprintln(p.Stderr, stopped)
		return stopped.ExitCode()
	case errors.Is(err, syscall.EPIPE): // the reader of the pipe has gone, so no message would arrive
		return exitFailed
	}
	p.say("error: %v", err)
	if errors.As(err, &wrong) {
		return exitWrong
	}
	return exitFailed
}

// A wrongError is a fault of the call or of a file: exit code 2.
type wrongError = binary.Fault

// wrong marks an error as the call's fault; nil stays nil.
func wrong(err error) error { return binary.Blame(err) }

// exited carries kong's own exits (--help) up the stack.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func run(ctx context.Context, e Embedded, p *Process) (err error) {
	m, err := openModel(e, p)
	if err != nil {
		return wrong(err)
	}
	leads, err := m.join(ctx)
	if err != nil || !leads {
		return err
	}
	defer func() { err = m.leave(err) }()
	if err := writePID(); err != nil {
		return wrong(err)
	}
	defer func() {
		if e := m.close(); err == nil {
			err = e
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			code, ok := r.(exited)
			if !ok {
				panic(r)
			}
			err = code
		}
	}()
	var c commands
	parser, err := newParser(&c, m.manifest.Name,
		kong.Description(describe(m.manifest)),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.Vars{"version": version(m.manifest)},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(m),
	)
	if err != nil {
		return err
	}
	m.hideUnsuited(parser.Model.Node)
	k, err := parser.Parse(p.Args)
	if err != nil {
		if parse := (*kong.ParseError)(nil); errors.As(err, &parse) && len(p.Args) == 0 {
			_ = parse.Context.PrintUsage(false) // the error below decides
		}
		return wrong(usage.Explain(err))
	}
	if err := errors.Join(lists.Check(k), m.suited(k.Selected())); err != nil {
		return wrong(err)
	}
	if c, ok := k.Selected().Target.Addr().Interface().(subcommand); ok {
		return c.Run(ctx, m) // the flag tree, 0.4 MB, can be collected meanwhile
	}
	return k.Run()
}

// newParser returns the parser of a command line.
func newParser(c *commands, name string, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name(name),
		kong.Vars{"version": "", "strategies": strings.Join(decode.Strategies(), ", "), "templates": strings.Join(chat.Names(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}, options...)...)
}

// Grammar returns the parser of the command line of all per-model binaries, for
// a program that checks a call before it makes the binary.
func Grammar() (*kong.Kong, error) { return newParser(&commands{}, "BIN") }

// A subcommand runs the model, possibly for a long time.
type subcommand interface {
	Run(ctx context.Context, m *model) error
}
