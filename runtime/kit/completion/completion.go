// Package completion generates shell completion scripts for a command line:
// subcommands, their flags, and the values of flags with few values.
package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Shells lists the shells that Script supports.
var Shells = []string{"bash", "zsh", "fish"}

// Script returns the completion script of the program name. words maps the names of
// arguments, and the placeholders of flags, to their possible values other than files.
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
	return "", fmt.Errorf("no completion for shell %q; expected one of %s", shell, strings.Join(Shells, ", "))
}

// A subcommand is a node of the command line: the program, a subcommand, or a
// subcommand of a subcommand.
type subcommand struct {
	path  []string
	help  string
	subs  []subcommand // name and help only
	flags []flag
	words []string // possible values of the arguments
}

// at returns the subcommand's position in the scripts, for example " bench serve"; ""
// for the program.
func (v *subcommand) at() string {
	if len(v.path) == 0 {
		return ""
	}
	return " " + strings.Join(v.path, " ")
}

type flag struct {
	name, help string
	short      rune
	takes      bool // it takes a value
	values     []string
}

// collect appends a node and its descendants to out.
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
	if n.DefaultCmd != nil { // its flags may follow the node's name directly
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

// flagOf describes a flag. Its values are those of its enum, else those of its
// placeholder in words.
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

// firstSentence returns the help text up to the first colon, semicolon or parenthesis.
func firstSentence(help string) string {
	if i := strings.IndexAny(help, ":;("); i > 0 {
		help = help[:i]
	}
	return strings.TrimRight(strings.TrimSpace(help), ".")
}

// function returns a function name that is valid in every shell.
func function(name string) string {
	return "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// quote returns s in single quotes, for any of the shells.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// names returns the words that complete a subcommand.
func (v *subcommand) names() []string {
	var out []string
	for _, s := range v.subs {
		out = append(out, s.path[len(s.path)-1])
	}
	return append(out, v.words...)
}
