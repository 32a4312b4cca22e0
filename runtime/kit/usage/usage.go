// Package usage words the errors of a wrong call, the same for iflowc and for
// the binaries that it makes.
package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// Explain returns an error of kong's parser in words for users: it names the
// nearest flag or subcommand, or else the call that lists them. Other errors it
// returns unchanged.
func Explain(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return err
	}
	node := parse.Context.Selected()
	if node == nil {
		node = parse.Context.Model.Node
	}
	text := parse.Error()
	what, _, _ := strings.Cut(text, ", did you mean")
	if flag, ok := strings.CutPrefix(what, "unknown flag "); ok {
		return fmt.Errorf("unknown flag %s%s", flag, near(flag, "--", flagNames(node), node, "flags"))
	}
	if word, ok := strings.CutPrefix(what, "unexpected argument "); ok {
		if subcommands, parent := subcommandNames(node); len(subcommands) > 0 {
			return fmt.Errorf("unknown subcommand %s%s", word, near(word, "", subcommands, parent, "subcommands"))
		}
		return fmt.Errorf("unexpected argument %q; %s", word, lists(node, "arguments and flags"))
	}
	if strings.HasPrefix(text, "expected one of ") {
		return fmt.Errorf("no subcommand given; %s", lists(node, "subcommands"))
	}
	if missing, ok := strings.CutPrefix(text, "expected "); ok {
		return fmt.Errorf("missing argument %s; %s", strings.Trim(missing, `"`), lists(node, "arguments and flags"))
	}
	if flag, _, ok := strings.Cut(text, ": "); ok && strings.HasSuffix(text, "(<EOL>)") {
		return fmt.Errorf("%s: no value given", flag)
	}
	return err
}

// near ends an error about an unknown word: with the nearest known one, or with
// the call that lists what there is.
func near(word, dashes string, names []string, n *kong.Node, what string) string {
	if meant := spelling.Nearest(strings.TrimLeft(word, "-"), names); meant != "" {
		return fmt.Sprintf("; did you mean %s%s?", dashes, meant)
	}
	return "; " + lists(n, what)
}

// lists names the call that lists what a node of the command line takes.
func lists(n *kong.Node, what string) string {
	return fmt.Sprintf("%q lists the %s", n.FullPath()+" --help", what)
}

// flagNames returns the flags that a call of a node may have.
func flagNames(n *kong.Node) (names []string) {
	nodes := []*kong.Node{n}
	if n.DefaultCmd != nil { // its flags may follow at once
		nodes = append(nodes, n.DefaultCmd)
	}
	for _, n := range nodes {
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// subcommandNames returns the subcommands that may stand in a node's place, and
// the node that has them. The default of several subcommands needs no name, so
// kong takes a misspelled sibling for an argument of the default.
func subcommandNames(n *kong.Node) (names []string, parent *kong.Node) {
	if n.Parent != nil && n.Parent.DefaultCmd == n {
		n = n.Parent
	}
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names, n
}
