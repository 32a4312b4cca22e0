package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
)

// momentsSuffix ends the names of products of columns in an importance file.
const momentsSuffix = ".moments"

// Squares are sums of products of a matrix's input columns over calibration
// text: for each run of Width columns a square of Width·Width numbers, row-major,
// of which the upper triangle counts.
type Squares struct {
	Width int
	Sums  []float32
}

// Moments reads the products of columns in an importance file as they are
// wanted, and keeps the few that were factored last: matrices that read the same
// input come one after the other. It is safe for concurrent use.
type Moments struct {
	set    *Set
	digest string

	mu     sync.Mutex
	recent []namedFeedback
}

type namedFeedback struct {
	name     string
	feedback *tensor.Feedback
}

// OpenMoments opens an importance file's products of columns; nil where it has
// none. The Moments are to be closed.
func OpenMoments(path string) (*Moments, error) {
	set, err := Open(path)
	if err != nil {
		return nil, err
	}
	for _, t := range set.Tensors() {
		if !strings.HasSuffix(t.Name, momentsSuffix) {
			continue
		}
		digest, err := digestOf(path)
		if err != nil {
			set.Close()
			return nil, err
		}
		return &Moments{set: set, digest: digest}, nil
	}
	return nil, set.Close()
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Close closes the file. It may be nil.
func (m *Moments) Close() error {
	if m == nil {
		return nil
	}
	return m.set.Close()
}

// Digest names the contents; it is empty for none.
func (m *Moments) Digest() string {
	if m == nil {
		return ""
	}
	return m.digest
}

// keptFeedbacks is how many factored matrices stay in memory.
const keptFeedbacks = 3

// feedback is what the moments of a stored matrix of cols columns give; nil
// where there are none.
func (m *Moments) feedback(name string, cols int) (*tensor.Feedback, error) {
	info, ok := m.set.Lookup(name + momentsSuffix)
	if !ok || len(info.Shape) != 3 || info.Shape[1] != info.Shape[2] {
		return nil, nil
	}
	if parts, width := info.Shape[0], info.Shape[1]; parts*width < cols || (parts-1)*width >= cols {
		return nil, nil // the recipe's columns are not the stored ones
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.recent {
		if r.name == name {
			return r.feedback, nil
		}
	}
	sums, err := m.set.Float32(name + momentsSuffix)
	if err != nil {
		return nil, err
	}
	f, err := tensor.NewFeedback(sums, info.Shape[1], cols)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", name, momentsSuffix, err)
	}
	if len(m.recent) == keptFeedbacks {
		m.recent = m.recent[1:]
	}
	m.recent = append(m.recent, namedFeedback{name, f})
	return f, nil
}

// FeedBack makes recipes over the set that quantise let later columns make up
// for the error of earlier ones (tensor.Feedback), where the moments have the
// matrix. The moments must stay open as long as the set.
func (s *Set) FeedBack(m *Moments) { s.moments = m }

// Moments is what FeedBack was given; nil for none.
func (s *Set) Moments() *Moments { return s.moments }

// feedbackOf is the feedback of a recipe's columns, or nil.
func (e *evaluator) feedbackOf(r *tensor.Recipe, cols int) (*tensor.Feedback, error) {
	if e.set.moments == nil {
		return nil, nil
	}
	for _, name := range r.Sources() {
		if f, err := e.set.moments.feedback(SourceName(name, e.index), cols); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}
