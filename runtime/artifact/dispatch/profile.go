package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// Format is the version of profile files.
const Format = 1

// A Profile holds the fastest implementations by shape. It is stored as JSON, which is
// also valid YAML.
type Profile struct {
	Format int     `json:"format"`
	Device string  `json:"device,omitempty"` // where it was measured
	Order  string  `json:"order,omitempty"`  // "class" or "any": the implementations that it may combine
	Shapes []Shape `json:"shapes"`

	Splits []Splits `json:"splits,omitempty"` // for attention on GPUs, by ascending context

	Machine *Machine `json:"machine,omitempty"` // fingerprint of the device

	path string
}

// OfGPU reports whether the profile was measured on a GPU.
func (p *Profile) OfGPU() bool { return p != nil && p.Machine != nil && p.Machine.GPU != nil }

// A Shape is a matmul's shape [N, K] and weight type with its rules.
type Shape struct {
	N     int    `json:"n"`
	K     int    `json:"k"`
	DType string `json:"dtype"`
	Rules []Rule `json:"rules"`

	Measured *Measurement `json:"measured,omitempty"` // data that the rules were derived from
}

// A Rule selects an implementation from a number of rows on, up to the next rule.
type Rule struct {
	Rows int    `json:"rows"`
	Impl string `json:"impl"`
}

// Choice returns the rules as text: "gemv, rows>=3: flat_gemm".
func (s *Shape) Choice() string {
	text := ""
	for i, r := range s.Rules {
		if i > 0 {
			text += fmt.Sprintf(", rows>=%d: ", r.Rows)
		}
		text += r.Impl
	}
	return text
}

// maxProfile bounds the size of a profile file: a thousand shapes need 100 KB.
const maxProfile = 16 << 20

// Read reads and validates a profile.
func Read(path string) (*Profile, error) {
	data, err := regular.Read(path, maxProfile)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse parses and validates a profile; path is its name in errors.
func Parse(path string, data []byte) (*Profile, error) {
	p := &Profile{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: not a profile: %w; create one with iflowc profile", path, err)
	}
	p.path = path
	return p, p.check()
}

// ReadBeside reads a profile, or returns nil if the file does not exist.
func ReadBeside(path string) (*Profile, error) {
	p, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return p, err
}

// Write writes the profile to a file, atomically.
func (p *Profile) Write(path string) error {
	p.Format = Format
	if err := p.check(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	data = numberLists.ReplaceAllFunc(data, oneLine)
	f, err := os.CreateTemp(filepath.Dir(path), ".profile-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(data, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// numberLists matches lists of numbers, which MarshalIndent spreads over several lines.
var numberLists = regexp.MustCompile(`\[[-0-9.,e\s]+\]`)

func oneLine(list []byte) []byte {
	return bytes.Join(bytes.Fields(list), nil)
}

func (p *Profile) name() string {
	if p.path == "" {
		return "profile"
	}
	return p.path
}

func (p *Profile) check() error {
	if p.Format != Format {
		return fmt.Errorf("%s: format %d, expected %d; measure again", p.name(), p.Format, Format)
	}
	seen := map[shapeKey]bool{}
	for _, s := range p.Shapes {
		key := shapeKey{s.N, s.K, s.DType}
		if s.N < 1 || s.K < 1 || s.DType == "" {
			return fmt.Errorf("%s: shape [%d, %d, %s]: n, k and dtype must be given", p.name(), s.N, s.K, s.DType)
		}
		if seen[key] {
			return fmt.Errorf("%s: shape [%d, %d, %s] is listed twice", p.name(), s.N, s.K, s.DType)
		}
		seen[key] = true
		for i, r := range s.Rules {
			if r.Rows < 1 || i > 0 && r.Rows <= s.Rules[i-1].Rows {
				return fmt.Errorf("%s: shape [%d, %d, %s]: rule %d starts at %d rows; rules must ascend from 1", p.name(), s.N, s.K, s.DType, i+1, r.Rows)
			}
			if r.Impl == "" {
				return fmt.Errorf("%s: shape [%d, %d, %s]: rule %d names no implementation", p.name(), s.N, s.K, s.DType, i+1)
			}
		}
	}
	return p.checkSplits()
}

// find returns the rules of a shape, or nil.
func (p *Profile) find(n, k int, dtype string) []Rule {
	for _, s := range p.Shapes {
		if s.N == n && s.K == k && s.DType == dtype {
			return s.Rules
		}
	}
	return nil
}

// A shapeKey identifies a shape.
type shapeKey struct {
	n, k  int
	dtype string
}
