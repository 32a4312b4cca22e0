// Package clidoc writes the reference page of a command line as Markdown: its
// subcommands with their arguments, flags and examples.
package clidoc

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Markdown returns the sections of all subcommands that are not hidden, in their
// order: "## program subcommand" each.
func Markdown(app *kong.Application) string {
	var b strings.Builder
	for _, n := range app.Leaves(true) {
		section(&b, app, n)
	}
	return b.String()
}

// section writes one subcommand.
func section(b *strings.Builder, app *kong.Application, n *kong.Node) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n    %s\n", n.FullPath(), n.Help, app.Name+" "+n.Summary())
	if len(n.Positional) > 0 {
		b.WriteString("\n| argument | meaning |\n|---|---|\n")
		for _, p := range n.Positional {
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Summary(), cell(p.Help))
		}
	}
	var flags []*kong.Flag
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if f.Name != "help" && f.Name != "version" {
				flags = append(flags, f)
			}
		}
	}
	if len(flags) > 0 {
		b.WriteString("\n| flag | meaning |\n|---|---|\n")
		for _, f := range flags {
			fmt.Fprintf(b, "| %s | %s |\n", spelling(f), cell(f.Help))
		}
	}
	if n.Detail != "" {
		fmt.Fprintf(b, "\n%s\n", detail(n.Detail))
	}
}

// spelling returns a flag with the placeholder of its value.
func spelling(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if !f.IsBool() {
		name += "=" + f.FormatPlaceHolder()
	}
	return "`" + strings.ReplaceAll(name, "|", `\|`) + "`"
}

// cell escapes text for a table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// detail converts indented lines of a help text to a Markdown code block: four
// spaces after a blank line.
func detail(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			line = "  " + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
