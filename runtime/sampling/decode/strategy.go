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

// DefaultPool is how many of the most probable tokens a strategy looks at unless
// its pool_size says otherwise.
const DefaultPool = 50

// Largest values of pool_size: strategies sort their pool for each token, but
// for mirostat1, which looks at the whole vocabulary.
const (
	maxPool = 1024
	anyPool = 1_000_000
)

// minTemperature keeps a temperature of 0 from dividing by it.
const minTemperature = 0.001

// StrategyOptions choose a named strategy.
type StrategyOptions struct {
	Name        string  // with parameters: "mirostat:tau=3,eta=0.2"
	Temperature float64 // below 0.001 it counts as that
	Seed        uint64
	EOS         []int32 // for eos_bypassing_max
	Exclude     []int32 // never chosen: the unknown token
}

// A Strategy picks tokens from the pool of the most probable ones, whose
// probabilities are a softmax over the pool alone. The same options and rows
// give the same tokens. Not safe for concurrent use.
type Strategy struct {
	opt    StrategyOptions
	pool   int
	bypass int // how often an end token is still replaced
	pick   picker
	whole  bool
	params params
	all    []candidate // scratch
}

// A picker chooses a candidate of the pool, which is sorted by probability
// unless the strategy's row says otherwise. history holds the tokens so far.
type picker func(pool []candidate, history []int32) int

// params are a strategy's parameters by name.
type params map[string]float64

// A strategyRow is what names, parameters (with defaults) and picker belong
// together.
type strategyRow struct {
	names  []string
	params params
	make   func(p params, rng *rand.Rand) picker
	whole  bool // the pool stands for the vocabulary, and is in no order
}

// strategies are all of them. Every one also knows pool_size and
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

// Strategies lists the names of all strategies.
func Strategies() (names []string) {
	for _, s := range strategies {
		names = append(names, s.names[0])
	}
	return names
}

// NewStrategy reads a name with its parameters and returns the strategy.
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
	return nil, fmt.Errorf("strategy %.40q is not known; there are %s", name, strings.Join(Strategies(), ", "))
}

// A paramRange is what values a parameter may have.
type paramRange struct {
	from, to float64
	whole    bool
}

// paramRanges are those of all strategies' parameters.
var paramRanges = map[string]paramRange{
	"pool_size": {1, anyPool, true}, "eos_bypassing_max": {0, 1e6, true},
	"min_k": {0, 1e6, true}, "max_k": {1, 1e6, true}, "k": {1, 1e6, true}, "m": {1, 1e6, true}, "n": {1, maxOrder, true},
	"top_p": {0, 1, false}, "min_p": {0, 1, false}, "p": {0, 1, false}, "z": {0, 1, false}, "alpha": {0, 1, false}, "beta": {0, 1, false},
	"tau": {0, 100, false}, "eta": {0, 100, false},
	"beams": {1, maxBeams, true}, "length_penalty": {0, 100, false}, "early_stopping": {0, float64(StopNever), true},
}

// read sets parameters from a list like "tau=3,eta=0.2".
func (p params) read(strategy, list string) error {
	if list == "" {
		return nil
	}
	for item := range strings.SplitSeq(list, ",") {
		key, text, _ := strings.Cut(item, "=")
		if _, ok := p[key]; !ok {
			return fmt.Errorf("strategy %s has no parameter %.40q; it has %s", strategy, key, strings.Join(slices.Sorted(maps.Keys(p)), ", "))
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

// Next picks a token from logits, one for each token that may be picked.
// history holds the tokens before it, the prompt included.
func (s *Strategy) Next(logits []float32, history []int32) (int32, error) {
	if len(logits) == 0 {
		return 0, errors.New("bug: a row of no logits")
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

// candidates fills the pool.
func (s *Strategy) candidates(logits []float32) []candidate {
	most := s.pool
	if s.whole {
		most = min(most, wholePool)
		s.params[total] = float64(min(s.pool, countAllowed(logits)))
	}
	more := most + len(s.opt.Exclude)
	s.all = largest(s.all[:0], logits, more, -math.MaxFloat32)
	pool := s.all
	if !s.whole {
		front(pool, len(pool)) // they may be in the order of their ids
	}
	if len(s.opt.Exclude) > 0 {
		pool = slices.DeleteFunc(pool, func(c candidate) bool { return slices.Contains(s.opt.Exclude, c.id) })
	}
	return pool[:min(most, len(pool))]
}

// wholePool is how many tokens stand for the vocabulary: mirostat1 draws from no
// more. Listing all 49,152 takes 1.5 ms a token, this many 0.2.
const wholePool = 8192

// total is the parameter that tells how many tokens the pool stands for.
const total = "total"

// countAllowed is how many tokens are not forbidden.
func countAllowed(logits []float32) (n int) {
	for _, l := range logits {
		if l >= -math.MaxFloat32 {
			n++
		}
	}
	return n
}

// drawIndex draws an index by probability; they need not add up to 1.
func drawIndex(c []candidate, rng *rand.Rand) int {
	id := weighted(c, rng)
	return slices.IndexFunc(c, func(x candidate) bool { return x.id == id })
}
