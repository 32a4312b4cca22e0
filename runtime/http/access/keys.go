package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Key is a client of a service that requires API keys.
type Key struct {
	Name        string              // in logs, metrics and error messages
	Hashes      [][sha256.Size]byte // SHA-256 of each of its API keys
	MaxPriority int                 // the most urgent priority that it may request
	Operator    bool                // it may change what the service serves: load and unload adapters
	MetricsOnly bool                // it may read the metrics and nothing else
	Limits
}

// Limits bound the use by a client; 0: no limit.
type Limits struct {
	Requests    int // per minute
	Tokens      int // per minute, prompt and generated tokens
	Concurrency int // concurrent requests
}

// Limits of a key file.
const (
	maxFile  = 4 << 20 // of 40,000 keys; parsing takes a hundred times as much memory
	maxName  = 64
	maxLimit = 1_000_000_000
	// MostUrgent and LeastUrgent bound the priority of a request.
	MostUrgent, LeastUrgent = -100, 100
)

// Plain returns keys without limits, named api-key-1, api-key-2, and so on. Duplicates
// are dropped.
func Plain(texts []string) ([]Key, error) {
	var keys []Key
	seen := map[string]bool{}
	for _, text := range texts {
		if text == "" {
			return nil, errors.New("an API key is empty")
		}
		if !seen[text] {
			seen[text] = true
			keys = append(keys, Key{Name: fmt.Sprintf("api-key-%d", len(keys)+1), Hashes: [][sha256.Size]byte{sha256.Sum256([]byte(text))}})
		}
	}
	return keys, nil
}

// ReadFile reads a key file. The warning is not empty if other users can read the file.
func ReadFile(path string) (keys []Key, warning string, err error) {
	text, warning, err := ReadText(path)
	if err != nil {
		return nil, "", err
	}
	keys, err = Parse(path, text)
	return keys, warning, err
}

// ReadText returns the contents of a file with keys, which may be a pipe. The warning is not
// empty if other users can read the file.
func ReadText(path string) (text []byte, warning string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	if err != nil {
		return nil, "", err
	}
	if len(text) > maxFile {
		return nil, "", fmt.Errorf("%s: a key file may have at most %d bytes", path, maxFile)
	}
	return text, exposed(path, info), nil
}

// exposed returns a warning if other users can read a file, else "".
func exposed(path string, info os.FileInfo) string {
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("%s contains keys and has mode %04o: other users can read it; chmod 600 %s", path, info.Mode().Perm(), path)
}

// Parse parses a key file: a YAML list of mappings with the keys in fields. An unknown
// key is an error. Errors contain the line.
func Parse(name string, text []byte) ([]Key, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &parser{name: name, names: map[string]int{}, hashes: map[[sha256.Size]byte]int{}}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s contains no keys; expected a list of \"- name: …\" with \"key: …\"", name)
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, p.fail(list, "expected a list of keys, each beginning with \"- name: …\"")
	}
	var keys []Key
	for _, n := range list.Content {
		k, err := p.key(n)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// A parser parses a key file. It records the lines of names and keys, which must be
// unique.
type parser struct {
	name   string
	names  map[string]int
	hashes map[[sha256.Size]byte]int
}

func (p *parser) fail(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.name, at.Line, fmt.Sprintf(format, args...))
}

// fields are the keys of an entry with the functions that read their values.
var fields = []struct {
	name string
	read func(p *parser, k *Key, at *yaml.Node) error
}{
	{"name", (*parser).readName},
	{"key", (*parser).readKeys},
	{"max_priority", func(p *parser, k *Key, at *yaml.Node) error {
		return p.number(at, "max_priority", MostUrgent, LeastUrgent, &k.MaxPriority)
	}},
	{"operator", func(p *parser, k *Key, at *yaml.Node) error { return p.boolean(at, "operator", &k.Operator) }},
	{"metrics_only", func(p *parser, k *Key, at *yaml.Node) error { return p.boolean(at, "metrics_only", &k.MetricsOnly) }},
	{"requests_per_minute", func(p *parser, k *Key, at *yaml.Node) error {
		return p.number(at, "requests_per_minute", 0, maxLimit, &k.Requests)
	}},
	{"tokens_per_minute", func(p *parser, k *Key, at *yaml.Node) error {
		return p.number(at, "tokens_per_minute", 0, maxLimit, &k.Tokens)
	}},
	{"max_concurrency", func(p *parser, k *Key, at *yaml.Node) error {
		return p.number(at, "max_concurrency", 0, maxLimit, &k.Concurrency)
	}},
}

// key parses an entry of the list.
func (p *parser) key(n *yaml.Node) (k Key, err error) {
	if n.Kind != yaml.MappingNode {
		return k, p.fail(n, "expected \"name: …\" and \"key: …\"")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		if seen[at.Value] {
			return k, p.fail(at, "duplicate key %q", clip(at.Value))
		}
		seen[at.Value] = true
		if err := p.field(&k, at, value); err != nil {
			return k, err
		}
	}
	switch {
	case k.Name == "":
		return k, p.fail(n, "the key has no name; add \"name: …\"")
	case len(k.Hashes) == 0:
		return k, p.fail(n, "%s has no key; add \"key: …\"", k.Name)
	case k.MetricsOnly && k.Operator:
		return k, p.fail(n, "%s: metrics_only and operator exclude each other", k.Name)
	}
	return k, nil
}

func (p *parser) field(k *Key, at, value *yaml.Node) error {
	var known []string
	for _, f := range fields {
		if f.name == at.Value {
			return f.read(p, k, value)
		}
		known = append(known, f.name)
	}
	hint := ""
	if w := spelling.Nearest(at.Value, known); w != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", w)
	}
	return p.fail(at, "unknown key %q%s; expected one of %s", clip(at.Value), hint, strings.Join(known, ", "))
}

// clip shortens a text of the file for an error message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func (p *parser) readName(k *Key, at *yaml.Node) error {
	plain := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("-_.@", c)
	}
	k.Name = at.Value
	if at.Kind != yaml.ScalarNode || k.Name == "" || len(k.Name) > maxName || strings.IndexFunc(k.Name, func(c rune) bool { return !plain(c) }) >= 0 {
		return p.fail(at, "name: expected 1 to %d letters, digits and -_.@", maxName)
	}
	if line, ok := p.names[k.Name]; ok {
		return p.fail(at, "the name %s is already used on line %d; write several keys of one name as a list: \"key: [OLD, NEW]\"", k.Name, line)
	}
	p.names[k.Name] = at.Line
	return nil
}

// readKeys parses a key or a list of keys. Error messages never contain a key.
func (p *parser) readKeys(k *Key, at *yaml.Node) error {
	list := []*yaml.Node{at}
	if at.Kind == yaml.SequenceNode {
		list = at.Content
	}
	for _, n := range list {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
			return p.fail(n, "key: expected a key, \"sha256:\" followed by its hash in hexadecimal, or a list of these")
		}
		if strings.ContainsFunc(n.Value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return p.fail(n, "key: expected printable ASCII characters without spaces")
		}
		h := sha256.Sum256([]byte(n.Value))
		if digits, ok := strings.CutPrefix(n.Value, "sha256:"); ok {
			b, err := hex.DecodeString(digits)
			if err != nil || len(b) != sha256.Size {
				return p.fail(n, "key: expected 64 hexadecimal digits after sha256:, the output of printf %%s KEY | sha256sum")
			}
			h = [sha256.Size]byte(b)
		}
		if line, ok := p.hashes[h]; ok {
			return p.fail(n, "key: the same key is on line %d; a key belongs to one name", line)
		}
		p.hashes[h] = n.Line
		k.Hashes = append(k.Hashes, h)
	}
	return nil
}

func (p *parser) boolean(at *yaml.Node, name string, to *bool) error {
	if at.Tag != "!!bool" || at.Decode(to) != nil {
		return p.fail(at, "%s: expected true or false, found %q", name, clip(at.Value))
	}
	return nil
}

func (p *parser) number(at *yaml.Node, name string, least, most int, to *int) error {
	v, err := strconv.Atoi(at.Value)
	if at.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		return p.fail(at, "%s: expected a whole number from %d to %d, found %q", name, least, most, clip(at.Value))
	}
	*to = v
	return nil
}
