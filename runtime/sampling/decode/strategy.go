package decode

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// DefaultPool is the default of pool_size: the number of most probable tokens that a
// strategy considers.
const DefaultPool = 50

// Maximum pool_size: strategies sort their pool for each token. mirostat1 considers the
// whole vocabulary.
const (
	maxPool = 1024
	anyPool = 1_000_000
)

// minTemperature prevents a division by 0.
const minTemperature = 0.001

// StrategyOptions configure a named strategy.
type StrategyOptions struct {
	Name        string  // with parameters: "mirostat:tau=3,eta=0.2"
	Temperature float64 // at least 0.001 is used
	Seed        uint64
	EOS         []int32 // for eos_bypassing_max
	Exclude     []int32 // tokens that are never sampled, such as the unknown token
}

// A Strategy samples from a pool of the most probable tokens, with probabilities from a
// softmax over the pool only. The same options and rows produce the same tokens. It is
// not safe for concurrent use.
type Strategy struct {
	opt    StrategyOptions
	pool   int
	bypass int // how many more times an EOS token is replaced
	pick   picker
	whole  bool // see strategyRow
	params params
	all    []candidate // scratch
}

// A picker returns the index of a candidate in the pool, which is sorted by probability
// unless strategyRow.whole is set. history contains the tokens so far.
type picker func(pool []candidate, history []int32) int

// params maps parameter names to values.
type params map[string]float64

// A strategyRow defines a strategy: names, parameters with defaults, and picker.
type strategyRow struct {
	names  []string
	params params
	make   func(p params, rng *rand.Rand) picker
	whole  bool // the pool stands for the whole vocabulary and is not sorted
}

// strategies lists all strategies. Each also has the parameters pool_size and
// eos_bypassing_max.
var strategies = []strategyRow{
	{[]string{"sample.std", "std", "top_p", "sample.top_p"}, params{"min_k": 1, "max_k": 8, "top_p": 0.9}, pickStd, false},
	{[]string{"top_k", "sample.top_k"}, params{"max_k": 8}, pickStd, false},
	{[]string{"greedy", "sample.greedy"}, params{}, pickGreedy, false},
	{[]string{"min_p"}, params{"min_p": 0.05}, pickMinP, false},
	{[]string{"typical"}, params{"p": 0.95}, pickTypical, false},
	{[]string{"tfs"}, params{"z": 0.95}, pickTailFree, false},
	{[]string{"mirostat", "mirostat2"}, params{"tau": 5, "eta": 0.1}, pickMirostat, false},
	{[]string{"mirostat1"}, params{"tau": 5, "eta": 0.1, "m": 100, "pool_size": anyPool}, pickMirostat1, true},
	{[]string{"fsd", "sample.fsd"}, params{"k": 6, "alpha": 0.5, "n": 3, "beta": 0.9}, pickFSD, false},
	{[]string{"random_fsd", "sample.random_fsd"}, params{"k": 6, "alpha": 0.5, "n": 3, "beta": 0.9, "top_p": 0.93, "max_k": 8}, pickRandomFSD, false},
}

// Strategies returns the names of all strategies.
func Strategies() (names []string) {
	for _, s := range strategies {
		names = append(names, s.names[0])
	}
	return names
}

// NewStrategy parses a name with parameters and returns the strategy.
func NewStrategy(opt StrategyOptions) (*Strategy, error) {
	if math.IsNaN(opt.Temperature) || math.IsInf(opt.Temperature, 0) || opt.Temperature < 0 {
		return nil, fmt.Errorf("temperature %v: expected a number of 0 or more", opt.Temperature)
	}
	name, list, _ := strings.Cut(opt.Name, ":")
	for _, row := range strategies {
		if !slices.Contains(row.names, name) {
			continue
		}
		p := params{"pool_size": DefaultPool, "eos_bypassing_max": 0}
		for k, v := range row.params {
			p[k] = v
		}
		if err := p.read(name, list); err != nil {
			return nil, err
		}
		if size := p["pool_size"]; size > maxPool && !row.whole {
			return nil, fmt.Errorf("strategy %s: pool_size=%v: expected a whole number from 1 to %d", name, size, maxPool)
		}
		rng := rand.New(rand.NewPCG(opt.Seed, 0x9e3779b97f4a7c15))
		opt.Temperature = max(opt.Temperature, minTemperature)
		return &Strategy{opt: opt, pool: p.whole("pool_size"), bypass: p.whole("eos_bypassing_max"), pick: row.make(p, rng), whole: row.whole, params: p}, nil
	}
	return nil, fmt.Errorf("unknown strategy %.40q; expected one of %s", name, strings.Join(Strategies(), ", "))
}

// A paramRange is the range of a parameter.
type paramRange struct {
	from, to float64
	whole    bool
}

// paramRanges are the ranges of all strategies' parameters.
var paramRanges = map[string]paramRange{
	"pool_size": {1, anyPool, true}, "eos_bypassing_max": {0, 1e6, true},
	"min_k": {0, 1e6, true}, "max_k": {1, 1e6, true}, "k": {1, 1e6, true}, "m": {1, 1e6, true}, "n": {1, maxOrder, true},
	"top_p": {0, 1, false}, "min_p": {0, 1, false}, "p": {0, 1, false}, "z": {0, 1, false}, "alpha": {0, 1, false}, "beta": {0, 1, false},
	"tau": {0, 100, false}, "eta": {0, 100, false},
	"beams": {1, maxBeams, true}, "length_penalty": {0, 100, false}, "early_stopping": {0, float64(StopNever), true},
}

// read parses a parameter list such as "tau=3,eta=0.2".
func (p params) read(strategy, list string) error {
	if list == "" {
		return nil
	}
	for item := range strings.SplitSeq(list, ",") {
		key, text, _ := strings.Cut(item, "=")
		if _, ok := p[key]; !ok {
			return fmt.Errorf("strategy %s has no parameter %.40q; expected one of %s", strategy, key, strings.Join(slices.Sorted(maps.Keys(p)), ", "))
		}
		v, err := strconv.ParseFloat(text, 64)
		if r := paramRanges[key]; err != nil || !(v >= r.from && v <= r.to) || r.whole && v != math.Trunc(v) {
			kind := "number"
			if r.whole {
				kind = "whole number"
			}
			return fmt.Errorf("strategy %s: %s=%.40s: expected a %s from %.0f to %.0f", strategy, key, text, kind, r.from, r.to)
		}
		p[key] = v
	}
	return nil
}

func (p params) whole(key string) int { return int(p[key]) }

// Next samples a token from logits. history contains the tokens before it, prompt
// included.
func (s *Strategy) Next(logits []float32, history []int32) (int32, error) {
	if len(logits) == 0 {
		return 0, errors.New("bug: an empty row of logits")
	}
	if _, ok := argmax(logits); !ok {
		return 0, ErrNaN
	}
	pool := s.candidates(logits)
	if len(pool) == 0 {
		return 0, ErrForbidden
	}
	softmax(pool, s.opt.Temperature)
	token := pool[s.pick(pool, history)].id
	if s.bypass > 0 && slices.Contains(s.opt.EOS, token) {
		best := -1
		for i, c := range pool {
			if !slices.Contains(s.opt.EOS, c.id) && (best < 0 || order(c, pool[best]) < 0) {
				best = i
			}
		}
		if best >= 0 {
			s.bypass--
			return pool[best].id, nil
		}
	}
	return token, nil
}

// candidates returns the pool, sorted unless s.whole is set.
func (s *Strategy) candidates(logits []float32) []candidate {
	size := s.pool
	if s.whole {
		size = min(size, wholePool)
		s.params[total] = float64(min(s.pool, countAllowed(logits)))
	}
	more := size + len(s.opt.Exclude)
	s.all = largest(s.all[:0], logits, more, -math.MaxFloat32)
	pool := s.all
	if !s.whole {
		front(pool, len(pool)) // largest may return them in the order of their ids
	}
	if len(s.opt.Exclude) > 0 {
		pool = slices.DeleteFunc(pool, func(c candidate) bool { return slices.Contains(s.opt.Exclude, c.id) })
	}
	return pool[:min(size, len(pool))]
}

// wholePool is the number of tokens that stand for the vocabulary in mirostat1, which
// samples from no more. Listing all 49,152 tokens takes 1.5 ms per token, listing 8,192
// takes 0.2 ms.
const wholePool = 8192

// total is the parameter with the number of tokens that the pool stands for.
const total = "total"

// countAllowed returns the number of tokens that are not forbidden.
func countAllowed(logits []float32) (n int) {
	for _, l := range logits {
		if l >= -math.MaxFloat32 {
			n++
		}
	}
	return n
}

// drawIndex samples an index by probability; the probabilities need not sum to 1.
func drawIndex(c []candidate, rng *rand.Rand) int {
	id := weighted(c, rng)
	return slices.IndexFunc(c, func(x candidate) bool { return x.id == id })
}
