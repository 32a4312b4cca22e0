package decode

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// DefaultPool is how many of the most probable tokens a strategy looks at unless
// its pool_size says otherwise.
const DefaultPool = 50

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
	all    []candidate // scratch
}

// A picker chooses a candidate of the pool, which is sorted by probability.
// history holds the tokens so far.
type picker func(pool []candidate, history []int32) int

// params are a strategy's parameters by name.
type params map[string]float64

// A strategyRow is what names, parameters (with defaults) and picker belong
// together.
type strategyRow struct {
	names  []string
	params params
	make   func(p params, rng *rand.Rand) picker
}

// strategies are all of them. Every one also knows pool_size and
// eos_bypassing_max.
var strategies = []strategyRow{
	{[]string{"sample.std", "std", "top_p", "sample.top_p"}, params{"min_k": 1, "max_k": 8, "top_p": 0.9}, pickStd},
	{[]string{"top_k", "sample.top_k"}, params{"max_k": 8}, pickStd},
	{[]string{"greedy", "sample.greedy"}, params{}, pickGreedy},
	{[]string{"min_p"}, params{"min_p": 0.05}, pickMinP},
	{[]string{"typical"}, params{"p": 0.95}, pickTypical},
	{[]string{"tfs"}, params{"z": 0.95}, pickTailFree},
	{[]string{"mirostat", "mirostat2"}, params{"tau": 5, "eta": 0.1}, pickMirostat},
	{[]string{"mirostat1"}, params{"tau": 5, "eta": 0.1, "m": 100, "pool_size": 1e6}, pickMirostat1},
	{[]string{"fsd", "sample.fsd"}, params{"k": 6, "alpha": 0.5, "n": 3, "beta": 0.9}, pickFSD},
	{[]string{"random_fsd", "sample.random_fsd"}, params{"k": 6, "alpha": 0.5, "n": 3, "beta": 0.9, "top_p": 0.93, "max_k": 8}, pickRandomFSD},
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
		rng := rand.New(rand.NewPCG(opt.Seed, 0x9e3779b97f4a7c15))
		opt.Temperature = max(opt.Temperature, minTemperature)
		return &Strategy{opt: opt, pool: p.whole("pool_size"), bypass: p.whole("eos_bypassing_max"), pick: row.make(p, rng)}, nil
	}
	return nil, fmt.Errorf("strategy %q is not known; there are %s", name, strings.Join(Strategies(), ", "))
}

// read sets parameters from a list like "tau=3,eta=0.2".
func (p params) read(strategy, list string) error {
	if list == "" {
		return nil
	}
	for item := range strings.SplitSeq(list, ",") {
		key, text, _ := strings.Cut(item, "=")
		if _, ok := p[key]; !ok {
			known := make([]string, 0, len(p))
			for k := range p {
				known = append(known, k)
			}
			slices.Sort(known)
			return fmt.Errorf("strategy %s has no parameter %q; it has %s", strategy, key, strings.Join(known, ", "))
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 1e6 {
			return fmt.Errorf("strategy %s: %s=%s: expected a number from 0 to 1000000", strategy, key, text)
		}
		p[key] = v
	}
	for _, key := range []string{"pool_size", "max_k", "k", "n", "m"} {
		if v, ok := p[key]; ok && (v < 1 || v != math.Trunc(v)) {
			return fmt.Errorf("strategy %s: %s=%v: expected a whole number of 1 or more", strategy, key, v)
		}
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
	s.all = s.all[:0]
	for i, l := range logits {
		if l >= -math.MaxFloat32 && !slices.Contains(s.opt.Exclude, int32(i)) {
			s.all = append(s.all, candidate{id: int32(i), logit: l})
		}
	}
	if len(s.all) == 0 {
		return 0, errors.New("every token is excluded")
	}
	front(s.all, s.pool)
	pool := s.all[:min(s.pool, len(s.all))]
	softmax(pool, s.opt.Temperature)
	token := pool[s.pick(pool, history)].id
	if s.bypass > 0 && slices.Contains(s.opt.EOS, token) {
		for _, c := range pool {
			if !slices.Contains(s.opt.EOS, c.id) {
				s.bypass--
				return c.id, nil
			}
		}
	}
	return token, nil
}

// drawIndex draws an index by probability; they need not add up to 1.
func drawIndex(c []candidate, rng *rand.Rand) int {
	id := weighted(c, rng)
	return slices.IndexFunc(c, func(x candidate) bool { return x.id == id })
}
