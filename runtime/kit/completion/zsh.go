package completion

import (
	"fmt"
	"strings"
)

// zsh returns a function that describes subcommands and passes a subcommand's flags to
// _arguments.
func zsh(name string, subcommands []subcommand) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("#compdef %s", name)
	p("# zsh completion for %s. Load it with: source <(%s completion zsh)", name, name)
	p("%s() {", function(name))
	p("  local at= i")
	p("  local -a list")
	p("  for ((i = 2; i < CURRENT; i++)); do")
	p("    case \"$at ${words[i]}\" in")
	for _, v := range subcommands[1:] {
		p("      (%s) at=%s ;;", quote(v.at()), quote(v.at()))
	}
	p("    esac")
	p("  done")
	p("  case \"$at\" in")
	for _, v := range subcommands {
		p("    (%s)", quote(v.at()))
		p("      list=(%s)", strings.Join(described(&v), " "))
		p("      [[ ${words[CURRENT]} != -* && ${#list} -gt 0 ]] && _describe 'what' list")
		p("      _arguments -S : \\")
		for _, f := range v.flags {
			p("        %s \\", zshFlag(f))
		}
		p("        '*:file:_files'")
		p("      ;;")
	}
	p("  esac")
	p("}")
	p("compdef %s %s", function(name), quote(name))
	return b.String()
}

// described lists subcommands and argument values with their descriptions.
func described(v *subcommand) []string {
	var out []string
	for _, s := range v.subs {
		out = append(out, quote(s.path[len(s.path)-1]+":"+strings.ReplaceAll(firstSentence(s.help), ":", " ")))
	}
	for _, w := range v.words {
		out = append(out, quote(strings.ReplaceAll(w, ":", `\:`)))
	}
	return out
}

func zshFlag(f flag) string {
	help := strings.NewReplacer("[", "(", "]", ")", ":", " ").Replace(f.help)
	out := "--" + f.name
	if f.takes {
		out += "="
	}
	out += "[" + help + "]"
	switch {
	case len(f.values) > 0:
		out += ":" + f.name + ":(" + strings.Join(f.values, " ") + ")"
	case f.takes:
		out += ":" + f.name + ":_files"
	}
	return quote(out)
}
