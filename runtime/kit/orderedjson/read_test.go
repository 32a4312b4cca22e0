package orderedjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// text returns values that show what was read, in order.
var text = Maker[string]{
	Object: func(keys []string, values []string) string {
		var out []string
		for i, k := range keys {
			out = append(out, k+":"+values[i])
		}
		return "{" + strings.Join(out, " ") + "}"
	},
	List:  func(items []string) string { return "[" + strings.Join(items, " ") + "]" },
	Other: func(v any) string { return fmt.Sprintf("%T(%v)", v, v) },
}

func TestRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":[],"c":null}}`: "{b:json.Number(1) a:{d:[] c:<nil>(<nil>)}}",
		`[true, "x", 1e400, {}]`:        "[bool(true) string(x) json.Number(1e400) {}]",
		`{"a":1,"a":2}`:                 "{a:json.Number(1) a:json.Number(2)}",
		" 7 ":                           "json.Number(7)",
	} {
		if got, err := Read([]byte(in), 4, text); err != nil || got != want {
			t.Errorf("%s: have %s and %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "{", `{"a"`, `{"a":`, `{"a":1`, "[1", "[1,]", "[1}", "{1:2}", "1 2", "[] x", `"a`, "]", "nul"} {
		if got, err := Read([]byte(in), 4, text); err == nil {
			t.Errorf("%q was read as %s", in, got)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := Read(nested(4), 3, text); err != nil {
		t.Error(err)
	}
	if _, err := Read(nested(5), 3, text); !errors.Is(err, ErrDeep) {
		t.Errorf("a level too many: %v", err)
	}
}

// FuzzRead checks that Read accepts exactly valid JSON.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"b":[1,{"a":null}],"c":"\u00e9"}`, "[[[", "1e9 2", `{"a":1,}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Read(data, 1000, text)
		if valid := json.Valid(data); valid != (err == nil) && !errors.Is(err, ErrDeep) {
			t.Errorf("valid JSON: %v, read: %v", valid, err)
		}
	})
}
