package spec

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A Medusa is the section medusa of a model spec. It adds Medusa heads (Cai et
// al. 2024, arXiv:2401.10774), which draft tokens for speculative decoding. Head
// i, counted from 0, predicts the token at position p+2+i from the state at
// position p.
type Medusa struct {
	File    string `yaml:"file"`                       // checkpoint of the heads in model_dir, .safetensors or .pt; default: tensors medusa_head.0.0.linear.weight … of the model's files
	Heads   int    `yaml:"heads"`                      // number of heads to use, counted from the first; for an autoregressive draft head (Hydra): maximum number of drafted tokens; 0: all, or 6 tokens
	LMHead  string `yaml:"lm_head" words:"own|shared"` // output matrix of the heads; own: the checkpoint's; shared: the model's, after a square matrix of the checkpoint if it has one; default: own if the checkpoint has one row per token
	Vocab   int    `yaml:"vocab"`                      // with lm_head shared: number of candidate tokens, counted from the first token id; 0: all
	Choices any    `yaml:"choices"`                    // draft tree: a published tree's name, candidates per head such as [1, 7, 6], or a list of paths; default: the tree with the greatest expected gain

	Accept    string  `yaml:"accept" words:"exact|typical"` // default acceptance rule; exact: keeps the model's distribution; typical: Medusa's rule, which does not
	Threshold float64 `yaml:"posterior_threshold"`          // ε of typical acceptance; default: 0.09
	Alpha     float64 `yaml:"posterior_alpha"`              // α of typical acceptance; default: 0.3
}

// medusaPrefixes are the possible prefixes of a head's number in the names of its
// tensors: in a separate checkpoint, in a separate checkpoint that names the heads,
// and in the model's files.
var medusaPrefixes = []string{joinedHeads, joinedHeads + "medusa_head.", "medusa_head."}

// joinedHeads is the prefix of the tensors of a separate checkpoint after they are
// added to the model's tensors.
const joinedHeads = "medusa."

// Upper bounds of the counts that a checkpoint may have.
const (
	maxMedusaHeads  = 16
	maxMedusaLayers = 16
)

// A MedusaHeads describes the Medusa heads of a model.
type MedusaHeads struct {
	Heads     int
	Layers    int             // residual blocks of a head
	Projected bool            // a square matrix of the checkpoint precedes the model's output matrix
	Shared    bool            // the heads use the model's output matrix
	Columns   int             // number of candidate tokens of a head: the first of the vocabulary, or those in Tokens
	Tokens    []int32         // token id of each column; nil: the first ids of the vocabulary
	Chained   bool            // autoregressive: the one head is evaluated again for each drafted token (Hydra)
	Accuracy  medusa.Accuracy // measured by the trainer: how often head i's candidate of rank r is the token
	Plan      *medusa.Plan    // draft tree of the model spec; nil: the tree with the greatest expected gain
	common    bool            // all heads share one output matrix of the checkpoint
	prefix    string          // of the stored names
	tensors   map[string]Tensor
}

// joinMedusa adds the tensors of the heads' checkpoint to those of the model.
func (s *Spec) joinMedusa(set *checkpoint.Set) error {
	if s.Medusa.File == "" {
		return nil
	}
	path := s.medusaPath()
	err := set.Join(path, joinedHeads)
	if errors.Is(err, fs.ErrNotExist) {
		return errAt(s.Pos("medusa.file"), "medusa.file: no %s; train heads with tools/gen/medusa, or name a checkpoint of the reference", path)
	}
	if err != nil {
		return errAt(s.Pos("medusa.file"), "medusa.file: %v", err)
	}
	return nil
}

func (s *Spec) medusaPath() string {
	if filepath.IsAbs(s.Medusa.File) {
		return s.Medusa.File
	}
	return filepath.Join(s.ModelDir, s.Medusa.File)
}

// checkMedusa checks the values of the section that do not depend on files.
func (s *Spec) checkMedusa() error {
	d := &s.Medusa
	for _, c := range []struct {
		key  string
		bad  bool
		want string
	}{
		{"heads", d.Heads < 0 || d.Heads > maxMedusaHeads, "a number from 1 to 16, or 0 for all"},
		{"vocab", d.Vocab < 0, "a number of tokens, or 0 for all"},
		{"posterior_threshold", d.Threshold < 0 || d.Threshold > 1, "a probability"},
		{"posterior_alpha", d.Alpha < 0 || d.Alpha > 1, "a factor between 0 and 1"},
	} {
		if c.bad {
			return errAt(s.Pos("medusa."+c.key), "medusa.%s: want %s", c.key, c.want)
		}
	}
	return nil
}

// isMedusa reports whether a stored tensor belongs to the heads.
func (s *Spec) isMedusa(name string) bool {
	return s.Set("medusa") && (strings.HasPrefix(name, joinedHeads) || strings.HasPrefix(name, "medusa_head."))
}

// findMedusa counts the heads and finds their tensors, whose shapes the modules check. The names
// are those of the reference implementation: {head}.{layer}.linear.weight and .bias,
// {head}.{layers}.weight.
func (m *Model) findMedusa(h Headers) error {
	s := m.Spec
	if !s.Set("medusa") {
		return nil
	}
	at := s.Pos("medusa")
	if m.Net.encodes() || s.Graph != "" {
		return errAt(at, "medusa: heads need a decoder-only model with network_structure; have %s", m.Net.Topology())
	}
	d := &MedusaHeads{tensors: map[string]Tensor{}}
	for _, d.prefix = range medusaPrefixes {
		if d.Heads = countUp(h, maxMedusaHeads, func(i int) string { return d.block(i, 0) + ".weight" }); d.Heads > 0 {
			break
		}
	}
	if d.Heads == 0 {
		return errAt(at, "medusa: no tensor 0.0.linear.weight in the checkpoint of the heads, nor medusa_head.0.0.linear.weight in the model's files")
	}
	d.Layers = countUp(h, maxMedusaLayers, func(j int) string { return d.block(0, j) + ".weight" })
	m.Medusa = d
	for _, name := range h.Names() {
		if dt, shape, _ := h.Lookup(name); strings.HasPrefix(name, d.prefix) && dt.IsFloat() {
			d.tensors[name] = Tensor{File: name, Pattern: name, DType: dt, Shape: shape, Pos: at}
		}
	}
	if d.isChained(h) {
		return m.findChain(h)
	}
	if s.Medusa.Heads > d.Heads {
		return errAt(s.Pos("medusa.heads"), "medusa.heads: have %d, but the checkpoint has %d", s.Medusa.Heads, d.Heads)
	}
	if s.Medusa.Heads > 0 {
		d.Heads = s.Medusa.Heads
	}
	_, shape, own := h.Lookup(d.matrix(0))
	d.Projected = own && len(shape) == 2 && shape[0] == m.Hyper.Hidden && shape[0] < m.Hyper.Vocab
	own = own && !d.Projected
	if d.Shared = !own || s.Medusa.LMHead == "shared"; d.Shared && s.Medusa.LMHead == "own" {
		return errAt(s.Pos("medusa.lm_head"), "medusa.lm_head: have own, but the checkpoint has no tensor %s with a row a token; want shared", strings.TrimPrefix(d.matrix(0), d.prefix))
	}
	if err := m.sizeMedusa(); err != nil {
		return err
	}
	d.Accuracy = s.medusaConfig().accuracy(d.Heads)
	return m.planMedusa()
}

// countUp returns the number of consecutive names f(0), f(1), … that exist, limited to
// most.
func countUp(h Headers, most int, f func(int) string) int {
	for n := range most {
		if _, _, ok := h.Lookup(f(n)); !ok {
			return n
		}
	}
	return most
}

func (d *MedusaHeads) block(head, layer int) string {
	return d.prefix + strconv.Itoa(head) + "." + strconv.Itoa(layer) + ".linear"
}

func (d *MedusaHeads) matrix(head int) string {
	return d.prefix + strconv.Itoa(head) + "." + strconv.Itoa(d.Layers) + ".weight"
}

// sizeMedusa sets the number of candidate tokens of a head.
func (m *Model) sizeMedusa() error {
	s, d := m.Spec, m.Medusa
	d.Columns = m.Hyper.Vocab
	if s.Medusa.Vocab == 0 {
		return nil
	}
	if !d.Shared {
		return errAt(s.Pos("medusa.vocab"), "medusa.vocab: the checkpoint has matrices of its own, whose tokens are fixed; want lm_head: shared")
	}
	if s.Medusa.Vocab < m.Hyper.Vocab {
		d.Columns = (s.Medusa.Vocab + 15) / 16 * 16 // a multiple of the kernels' panels
	}
	d.Columns = min(d.Columns, m.Hyper.Vocab)
	return nil
}

// planMedusa builds the draft tree of `choices` and checks that the heads cover it.
func (m *Model) planMedusa() error {
	s, d := m.Spec, m.Medusa
	if s.Medusa.Choices == nil {
		return nil
	}
	at := s.Pos("medusa.choices")
	tree, err := parseTree(s.Medusa.Choices)
	if err != nil {
		return errAt(at, "medusa.choices: %v", err)
	}
	if tree.Depth() > d.Heads {
		return errAt(at, "medusa.choices: the tree needs %d heads, have %d", tree.Depth(), d.Heads)
	}
	for _, path := range tree {
		if slices.Max(path) >= d.Columns {
			return errAt(at, "medusa.choices: path %v: a head has %d candidate tokens", path, d.Columns)
		}
	}
	d.Plan, err = medusa.NewPlan(tree)
	return err
}
