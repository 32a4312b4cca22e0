package completion

import (
	"fmt"
	"strings"
)

// bash returns a function that finds the subcommand among the words so far. It
// completes the values of the preceding flag, flags after a dash, and subcommands and
// argument values elsewhere; files are completed by the shell.
func bash(name string, subcommands []subcommand) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# bash completion for %s. Load it with: source <(%s completion bash)", name, name)
	p("%s() {", function(name))
	p("  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= i names= flags=")
	p("  for ((i = 1; i < COMP_CWORD; i++)); do")
	p("    case \"$path ${COMP_WORDS[i]}\" in")
	for _, v := range subcommands[1:] {
		p("    %s) path=%s ;;", quote(v.at()), quote(v.at()))
	}
	p("    esac")
	p("  done")
	p("  case \"$path|$prev\" in")
	for _, v := range subcommands {
		for _, f := range v.flags {
			if len(f.values) > 0 {
				p("  %s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;", quote(v.at()+"|--"+f.name), quote(strings.Join(f.values, " ")))
			} else if f.takes {
				p("  %s) return ;;", quote(v.at()+"|--"+f.name))
			}
		}
	}
	p("  esac")
	p("  case \"$path\" in")
	for _, v := range subcommands {
		var flags []string
		for _, f := range v.flags {
			flags = append(flags, "--"+f.name)
		}
		p("  %s) names=%s flags=%s ;;", quote(v.at()), quote(strings.Join(v.names(), " ")), quote(strings.Join(flags, " ")))
	}
	p("  esac")
	p("  [[ $cur == -* ]] && names=$flags")
	p("  COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))")
	p("}")
	p("complete -o default -o bashdefault -F %s %s", function(name), quote(name))
	return b.String()
}
