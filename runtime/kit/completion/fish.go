package completion

import (
	"fmt"
	"strings"
)

// fish returns one line per subcommand and flag. Subcommands of subcommands also need
// the condition of their parent.
func fish(name string, subcommands []subcommand) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# fish completion for %s. Load it with: %s completion fish | source", name, name)
	for _, v := range subcommands {
		when := fishWhen(&v)
		for _, s := range v.subs {
			p("complete -c %s -n %s -a %s -d %s", name, quote(when), s.path[len(s.path)-1], quote(firstSentence(s.help)))
		}
		for _, w := range v.words {
			p("complete -c %s -n %s -a %s", name, quote(when), quote(w))
		}
		for _, f := range v.flags {
			line := fmt.Sprintf("complete -c %s -n %s -l %s -d %s", name, quote(when), f.name, quote(f.help))
			if f.short != 0 {
				line += " -s " + string(f.short)
			}
			switch {
			case len(f.values) > 0:
				line += " -x -a " + quote(strings.Join(f.values, " "))
			case f.takes:
				line += " -r"
			}
			p("%s", line)
		}
	}
	return b.String()
}

// fishWhen returns the condition that the command line contains a subcommand but none
// of its own subcommands.
func fishWhen(v *subcommand) string {
	if len(v.path) == 0 {
		return "__fish_use_subcommand"
	}
	var when []string
	for _, w := range v.path {
		when = append(when, "__fish_seen_subcommand_from "+w)
	}
	var subs []string
	for _, s := range v.subs {
		subs = append(subs, s.path[len(s.path)-1])
	}
	if len(subs) > 0 {
		when = append(when, "not __fish_seen_subcommand_from "+strings.Join(subs, " "))
	}
	return strings.Join(when, "; and ")
}
