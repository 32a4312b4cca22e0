package grammar

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// byteVocabulary has all bytes, some longer tokens, and the end of the text.
func byteVocabulary(t testing.TB) (v *Vocabulary, words [][]byte, end int32) {
	for b := range 256 {
		words = append(words, []byte{byte(b)})
	}
	for _, word := range strings.Fields(`[" "] "," ", aa ab "aa" "ab","b" b","b b","ab" ","aa","a a"]] "],[" "," true,false 1,1 1,2 },{ {"a":1} \u0061" \" \",`) {
		words = append(words, []byte(word))
	}
	end = int32(len(words))
	words = append(words, nil)
	v, err := NewVocabulary(len(words), func(id int32) []byte { return words[id] }, []int32{end})
	if err != nil {
		t.Fatal(err)
	}
	return v, words, end
}

// TestUniqueItems samples arrays from masks: each ends, and its items differ.
func TestUniqueItems(t *testing.T) {
	t.Parallel()
	v, words, end := byteVocabulary(t)
	for _, schema := range []string{
		`{"type":"array","items":{"enum":["aa","ab","b",1,11,true]},"uniqueItems":true,"minItems":5}`,
		`{"type":"array","items":{"type":"boolean"},"uniqueItems":true}`,
		`{"type":"array","items":{"type":"integer","minimum":-3,"maximum":12},"uniqueItems":true,"minItems":14}`,
		`{"type":"array","items":{"type":"string","pattern":"^[ab]{1,3}$"},"uniqueItems":true,"minItems":10}`,
		`{"type":"array","items":{"type":"array","items":{"type":"boolean"},"maxItems":2,"uniqueItems":true},"uniqueItems":true,"minItems":4}`,
		`{"type":"array","items":{"type":"object","properties":{"a":{"enum":[1,2]},"b":{"type":"boolean"}},"additionalProperties":false},"uniqueItems":true,"minItems":7}`,
		`{"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2,"additionalProperties":{"type":"null"}}`,
		`{"anyOf":[{"const":[0,0]},{"type":"array","items":{"type":"string","maxLength":2},"uniqueItems":true}]}`,
		`{"anyOf":[{"type":"array","items":{"type":"array","items":{"enum":[1,11]},"uniqueItems":true},"maxItems":4},{"type":"array","items":{"type":"array","items":{"enum":[1,true]},"maxItems":3},"uniqueItems":true}]}`,
		`{"type":"array","items":{"type":"object","propertyNames":{"pattern":"^[ab]{1,2}$"},"minProperties":2,"maxProperties":2,"additionalProperties":{"enum":["a",[1]]}},"uniqueItems":true,"maxItems":20}`,
		`{"type":"array","items":{"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2,"additionalProperties":{"type":"null"}},"uniqueItems":true}`,
		`{"type":"array","items":{"anyOf":[{"type":"number"},{"const":0.10},{"const":1e-7}]},"uniqueItems":true,"maxItems":4}`,
	} {
		g, err := ParseSchema([]byte(schema))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		root, err := readJSON([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 40 {
			text := sample(t, g, v, words, end, rng)
			value, err := readJSON([]byte(text))
			w := newSchemaWriter(root)
			if err != nil || !w.holds(value, w.node(root, "")) {
				t.Fatalf("%s: %s is not valid: %v %v", schema, text, err, w.err)
			}
		}
	}
}

// sample draws tokens that masks allow until the text ends.
func sample(t *testing.T, g *Grammar, v *Vocabulary, words [][]byte, end int32, rng *rand.Rand) string {
	t.Helper()
	m, err := NewMatcher(g, v)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for range 2000 {
		mask, err := m.Mask()
		if err != nil {
			t.Fatalf("after %s: %v", out, err)
		}
		if g.unique {
			compareFilters(t, m, string(out))
		}
		var ids []int32
		for id := range int32(len(words)) {
			if mask[id/64]>>(id%64)&1 == 1 {
				ids = append(ids, id)
			}
		}
		id := ids[rng.IntN(len(ids))]
		if err := m.Accept(id); err != nil {
			t.Fatalf("after %s: %v", out, err)
		}
		if id == end {
			return string(out)
		}
		out = append(out, words[id]...)
	}
	t.Fatalf("the text does not end: %.200s", out)
	return ""
}

// compareFilters checks that only suspects of a mask are filtered.
func compareFilters(t *testing.T, m *Matcher, text string) {
	t.Helper()
	for _, p := range m.at {
		compareFilter(t, m, p, text)
	}
}

func compareFilter(t *testing.T, m *Matcher, from point, text string) {
	t.Helper()
	base := *from.at.mask.Load()
	tick := func() error { return nil }
	got, err := m.g.filter(m.v, from, base, tick)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.g.filterOf(m.v, from, base, m.v.order, tick)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range m.v.order {
		if w, bit := id/64, id%64; (got[w]^want[w])>>bit&1 == 1 {
			t.Fatalf("after %s: token %q: %d, expected %d", text, m.v.text[id], got[w]>>bit&1, want[w]>>bit&1)
		}
	}
}

// BenchmarkUnique measures masks inside an array of unique strings.
func BenchmarkUnique(b *testing.B) {
	v := generatedWords(b)
	g, err := ParseSchema([]byte(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := NewMatcher(g, v)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []byte(`["etain","etaoi","etaoin"`) {
			if err := m.Accept(int32(c)); err != nil {
				b.Fatal(err)
			}
			if _, err := m.Mask(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/25, "µs/mask")
}

// TestManyItems checks that arrays and names of objects end if they have many items, and
// that long items are compared quickly.
func TestManyItems(t *testing.T) {
	t.Parallel()
	v, _, _ := byteVocabulary(t)
	for _, c := range []struct{ schema, open, item, after, refused string }{
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, "[", "%", "]", ","},
		{`{"type":"object","minProperties":2}`, "{", `"%":1`, "}", ","},
		{`{"type":"array","items":{"type":"string"},"uniqueItems":true}`, `["` + strings.Repeat("long", 25000) + `","` + strings.Repeat("long", 25000), "", "x", `"`},
	} {
		g, err := ParseSchema([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatcher(g, v)
		if err != nil {
			t.Fatal(err)
		}
		text := c.open
		if c.item != "" {
			text += listOf(maxUnique, c.item)
		}
		if m.at, err = g.followAll(m.at, []byte(text)); err != nil || len(m.at) == 0 {
			t.Fatalf("%s: %d points, %v", c.schema, len(m.at), err)
		}
		start := time.Now()
		mask, err := m.Mask()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", c.schema, time.Since(start))
		for text, want := range map[string]uint64{c.after: 1, c.refused: 0} {
			if got := mask[text[0]/64] >> (text[0] % 64) & 1; got != want {
				t.Errorf("%s: %q: %d, expected %d", c.schema, text, got, want)
			}
		}
	}
}
