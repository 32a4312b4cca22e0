package decode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// randomRow returns a row of random logits.
func randomRow(vocab int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	row := make([]float32, vocab)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
	}
	return row
}

// heaviest are the settings with the highest cost per token.
func heaviest() map[string]Settings {
	list := map[string]Settings{
		"greedy":         {},
		"flat":           {Options: Options{Temperature: 100}},
		"flat top_p":     {Options: Options{Temperature: 100, TopP: 0.9999}},
		"flat top_k":     {Options: Options{Temperature: 100, TopK: math.MaxInt}},
		"flat typical":   {Options: Options{Temperature: 100, Typical: 0.9999}},
		"flat tail-free": {Options: Options{Temperature: 100, TailFree: 0.9999}},
		"all of them":    {Options: Options{Temperature: 100, TopK: 200_000, Typical: 0.9999, TailFree: 0.9999, TopP: 0.9999, MinP: 1e-9}},
		"penalties":      {Options: Options{Temperature: 1, Penalty: 1.1}, Frequency: 1, Presence: 1},
		"no repeat":      {Rules: Rules{NoRepeat: 32}},
		"bad words":      {Rules: Rules{BadWords: slices.Repeat([][]int32{slices.Repeat([]int32{5}, 64)}, 1024), MinNew: 1 << 20, EOS: slices.Repeat([]int32{2}, 128)}},
	}
	bias := map[int32]float32{}
	for i := range int32(1024) {
		bias[i] = 1
	}
	list["bias"] = Settings{Bias: bias}
	for _, name := range []string{
		"fsd", "fsd:n=8,k=1000,pool_size=1024", "random_fsd:n=8", "sample.std:pool_size=1024", "typical:p=1,pool_size=1024",
		"tfs:z=1,pool_size=1024", "mirostat:tau=100,eta=0,pool_size=1024", "mirostat1:tau=100,eta=0", "greedy:eos_bypassing_max=1000000",
	} {
		list[name] = Settings{Strategy: name, Options: Options{Temperature: 100}, Rules: Rules{EOS: []int32{2}}}
	}
	return list
}

// BenchmarkHeaviest measures them with 250,000 tokens and a text that repeats one token
// 8,192 times.
func BenchmarkHeaviest(b *testing.B) {
	row, list := randomRow(250_000), heaviest()
	for _, vocab := range []int{50_000, 250_000} {
		for name, set := range list {
			b.Run(fmt.Sprintf("%s/%d", name, vocab), func(b *testing.B) {
				s, err := NewSampler(set, 4)
				if err != nil {
					b.Fatal(err)
				}
				text := slices.Repeat([]int32{5}, 8192)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Next(row[:vocab], text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLearn measures the first token after a prompt of 8,192.
func BenchmarkLearn(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	random, row := make([]int32, 8192), randomRow(50_000)
	for i := range random {
		random[i] = int32(r.IntN(50_000))
	}
	for name, text := range map[string][]int32{"random": random, "equal": slices.Repeat([]int32{5}, 8192)} {
		for _, n := range []int{3, 8} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s, err := NewStrategy(StrategyOptions{Name: fmt.Sprintf("fsd:n=%d", n), Temperature: 1})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := s.Next(row, text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestExtremeSettings checks that all settings in range sample an allowed token, and
// that the lowest temperatures are greedy.
func TestExtremeSettings(t *testing.T) {
	t.Parallel()
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	rows := map[string][]float32{
		"usual": randomRow(300), "one token": {3}, "equal": make([]float32, 300),
		"large":     {math.MaxFloat32, -math.MaxFloat32, math.MaxFloat32, 0},
		"infinite":  {float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Inf(1))},
		"forbidden": {never, never, 1, never, 1},
	}
	var list []Settings
	for _, temperature := range []float64{0, math.Copysign(0, -1), tiny, 1e-320, 1e-9, 1e-4, 100, huge} {
		for _, o := range []Options{
			{}, {TopK: math.MaxInt}, {TopK: 1}, {TopP: tiny}, {TopP: 1 - 1e-16}, {MinP: tiny}, {MinP: 1}, {Typical: tiny}, {Typical: 1 - 1e-16},
			{TailFree: tiny}, {TailFree: 1 - 1e-16}, {Penalty: maxPenalty}, {Penalty: 1.0 / maxPenalty}, {TopK: 2, TopP: tiny, MinP: 1, Typical: tiny, TailFree: tiny},
		} {
			o.Temperature, o.Seed = temperature, math.MaxUint64
			list = append(list, Settings{Options: o})
		}
	}
	for _, row := range strategies {
		for _, p := range []string{"", ":pool_size=1"} {
			for _, temperature := range []float64{tiny, 100, huge} {
				list = append(list, Settings{Strategy: row.names[0] + p, Options: Options{Temperature: temperature}})
			}
		}
	}
	for _, name := range []string{"mirostat:tau=0,eta=100", "mirostat:tau=100,eta=100", "mirostat1:tau=0,eta=100", "mirostat1:tau=100,eta=100,m=1", "tfs:z=0", "typical:p=0", "min_p:min_p=0", "std:top_p=0", "fsd:alpha=1,beta=1,n=8"} {
		list = append(list, Settings{Strategy: name, Options: Options{Temperature: 1}})
	}
	for _, set := range list {
		for name, row := range rows {
			s, err := NewSampler(set, 1)
			if err != nil {
				t.Fatalf("%+v: %v", set.Options, err)
			}
			text := []int32{0}
			for range 20 {
				id, err := s.Next(row, text)
				if err != nil || row[id] < -math.MaxFloat32 {
					t.Fatalf("%s, %s %+v: token %d, %v", name, set.Strategy, set.Options, id, err)
				}
				if best, _ := argmax(row); set.Temperature < greedyBelow && set.Strategy == "" && set.Penalty == 0 && row[id] != row[best] {
					t.Errorf("%s, %+v: token %d, expected %d", name, set.Options, id, best)
				}
				text = append(text, id)
			}
		}
	}
	for _, o := range []Options{{Penalty: 1e300}, {Penalty: 1e-300}, {Penalty: tiny}, {TopP: huge}, {MinP: 1e6}, {TailFree: -tiny}, {Typical: huge}, {Temperature: -tiny}} {
		if _, err := NewSampler(Settings{Options: o}, 1); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// TestLinearMemory checks that FSD's memory is linear in the text for any n. A map of
// all contexts took 7.5 GB for 2,000 tokens.
func TestLinearMemory(t *testing.T) {
	s, err := NewStrategy(StrategyOptions{Name: "fsd:n=8", Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	text := make([]int32, 1<<16)
	for i := range text {
		text[i] = int32(i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := s.Next(randomRow(100), text); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 100*int64(len(text)) {
		t.Errorf("%d bytes of %d tokens", used, len(text))
	}
	runtime.KeepAlive(s)
}

// TestRadixSort compares it with a comparison sort.
func TestRadixSort(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), math.SmallestNonzeroFloat32}
	for _, n := range []int{1, 2, 5000, 70_000} {
		list := make([]candidate, n)
		for i := range list {
			list[i] = candidate{id: int32(i) * 40, logit: float32(r.NormFloat64()), p: float64(i)}
			if r.IntN(3) == 0 {
				list[i].logit = values[r.IntN(len(values))]
			}
		}
		for range 2 {
			want := slices.Clone(list)
			slices.SortFunc(want, order)
			got := slices.Clone(list)
			radixSort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%d candidates are in another order", n)
			}
			r.Shuffle(n, func(i, k int) { list[i], list[k] = list[k], list[i] })
		}
	}
}
