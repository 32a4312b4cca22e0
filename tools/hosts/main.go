//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == hostCommand {
		fail(firstProcess(os.Args[2], os.Args[3], os.Args[4]))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == "missing" {
		fail(Missing())
		return
	}
	if len(os.Args) > 2 {
		if f := map[string]func(context.Context, []string) error{"run": run, "speed": speed}[os.Args[1]]; f != nil {
			fail(f(ctx, os.Args[2:]))
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: hosts run [--link 20ms,1Gbit,1%] [--put FILE]… -- COMMAND…\n       hosts speed [FLAG]… WHOLE [PARTITIONED]…\n       hosts missing   (says why no hosts can be built here)")
	os.Exit(2)
}

// fail ends the program with the status of an error, if there is one.
func fail(err error) {
	if err == nil {
		return
	}
	if e, ok := err.(*exec.ExitError); ok { // of the command, which has said why
		os.Exit(max(1, e.ExitCode()))
	}
	fmt.Fprintln(os.Stderr, "hosts:", err)
	os.Exit(1)
}

// run runs a command on the first host.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	link := flags.String("link", "", "delay, bandwidth and loss of the network, such as 20ms,1Gbit,1%")
	var files []string
	flags.Func("put", "file or folder to copy into the user's home on the first host", func(f string) error { files = append(files, f); return nil })
	flags.Parse(args)
	if flags.NArg() == 0 {
		return errors.New("run: the command is missing, such as: hosts run --link 20ms -- bash")
	}
	shape, err := ParseShape(*link)
	if err != nil {
		return err
	}
	if err := Missing(); err != nil {
		return err
	}
	h, err := Build([2]int{-1, -1})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Link.Set(shape)
	if err := h.A.Put(".", files...); err != nil {
		return err
	}
	cmd := h.A.Command(ctx, flags.Args()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
