// Package completion writes shell completion scripts for a command line: its
// subcommands, each subcommand's flags, and the values of flags that have few.
package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Shells are those that Script knows.
var Shells = []string{"bash", "zsh", "fish"}

// Script is the completion script of a command line whose program is called
// name. words lists the values of an argument, by its name, besides files, and
// those of a flag, by its placeholder.
func Script(shell, name string, app *kong.Application, words map[string][]string) (string, error) {
	var subcommands []subcommand
	collect(app.Node, nil, words, &subcommands)
	switch shell {
	case "bash":
		return bash(name, subcommands), nil
	case "zsh":
		return zsh(name, subcommands), nil
	case "fish":
		return fish(name, subcommands), nil
	}
	return "", fmt.Errorf("no completion for shell %q; there is one for %s", shell, strings.Join(Shells, ", "))
}

// A subcommand is one node of the command line: the program itself, a subcommand, or a subcommand
// of a subcommand.
type subcommand struct {
	path  []string
	help  string
	subs  []subcommand // their flags are left out
	flags []flag
	words []string // what its first argument may be
}

// at is how scripts spell where a subcommand stands on the command line: " bench
// serve"; "" is the program itself.
func (v *subcommand) at() string {
	if len(v.path) == 0 {
		return ""
	}
	return " " + strings.Join(v.path, " ")
}

type flag struct {
	name, help string
	short      rune
	takes      bool // a value
	values     []string
}

// collect lists a node and those below it.
func collect(n *kong.Node, path []string, words map[string][]string, out *[]subcommand) {
	v := subcommand{path: path, help: n.Help}
	for _, p := range n.Positional {
		v.words = append(v.words, words[p.Name]...)
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			v.flags = append(v.flags, flagOf(f, words))
		}
	}
	if n.DefaultCmd != nil { // its flags may follow at once
		for _, f := range n.DefaultCmd.Flags {
			if !f.Hidden {
				v.flags = append(v.flags, flagOf(f, words))
			}
		}
	}
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		at := append(slices.Clone(path), c.Name)
		v.subs = append(v.subs, subcommand{path: at, help: c.Help})
	}
	*out = append(*out, v)
	for _, c := range n.Children {
		if !c.Hidden {
			collect(c, append(slices.Clone(path), c.Name), words, out)
		}
	}
}

// flagOf describes a flag. Its values are those of its enum, else the words of its
// placeholder.
func flagOf(f *kong.Flag, words map[string][]string) flag {
	out := flag{name: f.Name, help: firstSentence(f.Help), short: f.Short, takes: !f.IsBool() && !f.IsCounter()}
	for _, v := range strings.Split(f.Enum, ",") {
		if v != "" {
			out.values = append(out.values, v)
		}
	}
	if len(out.values) == 0 && out.takes {
		out.values = words[f.PlaceHolder]
	}
	return out
}

// firstSentence keeps a list of flags readable.
func firstSentence(help string) string {
	if i := strings.IndexAny(help, ":;("); i > 0 {
		help = help[:i]
	}
	return strings.TrimRight(strings.TrimSpace(help), ".")
}

// function makes a name that every shell takes for a function.
func function(name string) string {
	return "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// quote is a word in single quotes, for any of the shells.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// names are the words that complete a subcommand.
func (v *subcommand) names() []string {
	var out []string
	for _, s := range v.subs {
		out = append(out, s.path[len(s.path)-1])
	}
	return append(out, v.words...)
}
