package access

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

const example = `# Callers of the demo service.
- name: web
  key: [web-old, web-new]
  max_priority: -5
  requests_per_minute: 600
  tokens_per_minute: 100000
  max_concurrency: 8
- name: batch
  key: sha256:2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90
  max_priority: 10
  operator: true
`

func TestParse(t *testing.T) {
	t.Parallel()
	keys, err := Parse("keys.yaml", []byte(example))
	if err != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	web, batch := keys[0], keys[1]
	if web.Name != "web" || len(web.Hashes) != 2 || web.Hashes[1] != sha256.Sum256([]byte("web-new")) || web.MaxPriority != -5 || web.Operator || web.Limits != (Limits{600, 100000, 8}) {
		t.Errorf("%+v", web)
	}
	if batch.Hashes[0] != sha256.Sum256([]byte("alice")) || batch.MaxPriority != 10 || !batch.Operator || batch.Limits != (Limits{}) {
		t.Errorf("%+v", batch)
	}
}

// TestParseErrors checks that each error contains the line and none contains a key.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "contains no keys",
		"[]":                     "f:1: expected a list of keys",
		"name: a\nkey: secret\n": "f:1: expected a list of keys",
		"- secret\n":             "f:1: expected \"name: …\" and \"key: …\"",
		"- name: a\n":            "f:1: a has no key",
		"- key: secret\n":        "f:1: the key has no name",
		"- name: a b\n":          "f:1: name: expected",
		"- name: a\n  key:\n":    "f:2: key: expected a key",
		"- name: a\n  key: &x secret\n- name: b\n  key: *x\n":                "f:4: key: expected a key",
		"- name: a\n  key: my secret\n":                                      "f:2: key: expected printable ASCII",
		"- name: a\n  key: sha256:secret\n":                                  "f:2: key: expected 64 hexadecimal digits",
		"- name: a\n  key: secret\n- name: a\n  key: other\n":                "f:3: the name a is already used on line 1",
		"- name: a\n  key: secret\n- name: b\n  key: [other, secret]\n":      "f:4: key: the same key is on line 2",
		"- name: a\n  name: b\n":                                             "f:2: duplicate key \"name\"",
		"- name: a\n  key: secret\n  max_prio: 1\n":                          "f:3: unknown key \"max_prio\" (did you mean \"max_priority\"?); expected one of name, key, max_priority",
		"- name: a\n  key: secret\n  quota: 1\n":                             "f:3: unknown key \"quota\"; expected one of name",
		"- name: a\n  key: secret\n  max_priority: -101\n":                   "f:3: max_priority: expected a whole number from -100 to 100, found \"-101\"",
		"- name: a\n  key: secret\n  max_concurrency: lots\n":                "f:3: max_concurrency: expected a whole number from 0 to",
		"- name: a\n  key: secret\n  operator: maybe\n":                      "f:3: operator: expected true or false, found \"maybe\"",
		"- name: a\n  key: secret\n  operator: [true]\n":                     "f:3: operator: expected true or false",
		"- name: a\n  key: secret\n  metrics_only: 1\n":                      "f:3: metrics_only: expected true or false, found \"1\"",
		"- name: a\n  key: secret\n  metrics_only: true\n  operator: true\n": "f:1: a: metrics_only and operator exclude each other",
		"- name: a\n  key: 'secret\n":                                        "f: yaml: ",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", text, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error holds the key: %v", text, err)
		}
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	for mode, want := range map[os.FileMode]string{0o600: "", 0o640: "has mode 0640: other users can read it; chmod 600 "} {
		if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, warning, err := ReadFile(path); err != nil || !strings.Contains(warning, want) || (warning == "") != (want == "") {
			t.Errorf("%o: %q %v", mode, warning, err)
		}
	}
}

// TestKeyBombs: key files that expand, nest or repeat, and a device without an end.
func TestKeyBombs(t *testing.T) {
	const one = "- name: a\n  key: "
	for what, c := range map[string][2]string{
		"lists":     {one + strings.Repeat("[", 1<<16), "exceeded max depth"},
		"laughs":    {"- &a {name: a, key: [x, y]}\n- &b [*a, *a, *a]\n- [*b, *b, *b]\n", "keys.yaml:2: expected \"name: …\""},
		"itself":    {"- &a {name: a, key: *a}\n", "keys.yaml:1: key: expected a key"},
		"many":      {one + "[" + strings.Repeat("k, ", 1<<14) + "]", "the same key is on line 2"},
		"names":     {strings.Repeat("- name: a\n", 1<<12), "a has no key"},
		"unknown":   {"- " + strings.Repeat("x", 1000) + ": 1", "unknown key"},
		"a number":  {one + "k\n  max_priority: " + strings.Repeat("9", 1<<16), "max_priority: expected a whole number"},
		"documents": {strings.Repeat("---\n", 1<<12), "expected a list of keys"},
	} {
		path := hostiletest.File(t, "keys.yaml", []byte(c[0]))
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[0]), func() error { _, _, err := ReadFile(path); return err }, c[1])
		})
	}
	if _, _, err := ReadFile("/dev/zero"); err == nil || !strings.Contains(err.Error(), "at most 4194304 bytes") {
		t.Errorf("/dev/zero: %v", err)
	}
}

// FuzzParse checks that parsing any file ends, and that its result is within the
// limits, with unique names and keys.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("- {name: a, key: b, tokens_per_minute: 1e9}\n"))
	f.Add([]byte("- &a {name: a, key: b}\n- *a\n- <<: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := hostiletest.File(t, "keys.yaml", text)
		var keys []Key
		if hostiletest.Read(t, len(text), func() (err error) { keys, _, err = ReadFile(path); return err }) != nil {
			return
		}
		seen := map[string]bool{}
		for _, k := range keys {
			if k.Name == "" || len(k.Name) > maxName || len(k.Hashes) == 0 || k.MaxPriority < MostUrgent || k.MaxPriority > LeastUrgent ||
				min(k.Requests, k.Tokens, k.Concurrency) < 0 || max(k.Requests, k.Tokens, k.Concurrency) > maxLimit {
				t.Errorf("%+v", k)
			}
			for _, id := range append([]string{"name " + k.Name}, hashes(k)...) {
				if seen[id] {
					t.Errorf("%s is there twice", id)
				}
				seen[id] = true
			}
		}
	})
}

func hashes(k Key) (out []string) {
	for _, h := range k.Hashes {
		out = append(out, fmt.Sprintf("%x", h))
	}
	return out
}
