package usage_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/kit/usage"
)

type line struct {
	Verbose bool
	Serve   struct {
		Port int
		Host string
	} `cmd:""`
	Make struct {
		Spec   string `arg:""`
		Target string `enum:"cpu,cuda" default:"cpu"`
	} `cmd:""`
	Bench struct {
		Model struct{ Reps int }   `cmd:"" default:"withargs"`
		Serve struct{ URL string } `cmd:""`
	} `cmd:""`
	Secret struct{} `cmd:"" hidden:""`
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"serve --prot 8081":    "unknown flag --prot; did you mean --port?",
		"serve --verbos":       "unknown flag --verbos; did you mean --verbose?",
		"serve --zzz":          `unknown flag --zzz; "prog serve --help" lists the flags`,
		"serve -z":             `unknown flag -z; "prog serve --help" lists the flags`,
		"serve --port":         "--port: no value given",
		"serve x":              `unexpected argument "x"; "prog serve --help" lists the arguments and flags`,
		"serv":                 "unknown subcommand serv; did you mean serve?",
		"secre":                `unknown subcommand secre; did you mean serve?`,
		"dance":                `unknown subcommand dance; "prog --help" lists the subcommands`,
		"bench serv":           "unknown subcommand serv; did you mean serve?",
		"bench --rep 2":        "unknown flag --rep; did you mean --reps?",
		"":                     `no subcommand given; "prog --help" lists the subcommands`,
		"make":                 `missing argument <spec>; "prog make --help" lists the arguments and flags`,
		"make x --target tpu":  `--target must be one of "cpu","cuda" but got "tpu"`,
		"serve --port=chicken": `--port: expected a valid 64 bit int but got "chicken"`,
	} {
		k, err := kong.New(&line{}, kong.Name("prog"), kong.Writers(io.Discard, io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.Parse(strings.Fields(call))
		if err = usage.Explain(err); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", call, err, want)
		}
	}
	plain := errors.New("unknown flag --x")
	if err := usage.Explain(plain); err != plain {
		t.Errorf("another error became %v", err)
	}
}
