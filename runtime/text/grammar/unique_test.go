package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
)

// byteVocabulary has all bytes, some longer tokens, and the end of the text.
func byteVocabulary(t testing.TB, more ...string) (v *Vocabulary, words [][]byte, end int32) {
	for b := range 256 {
		words = append(words, []byte{byte(b)})
	}
	for _, word := range strings.Fields(`[" "] "," ", aa ab "aa" "ab","b" b","b b","ab" ","aa","a a"]] "],[" "," true,false 1,1 1,2 },{ {"a":1} \u0061" \" \",`) {
		words = append(words, []byte(word))
	}
	for _, word := range more {
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
	rounds := irtest.Rounds(12, 40)
	for _, schema := range []string{
		`{"type":"array","items":{"enum":["aa","ab","b",1,11,true]},"uniqueItems":true,"minItems":5}`,
		`{"type":"array","items":{"type":"boolean"},"uniqueItems":true}`,
		`{"type":"array","items":{"type":"object","propertyNames":{"pattern":"^[ab]$"},"additionalProperties":{"const":1},"maxProperties":2},"uniqueItems":true}`,
		`{"type":"array","items":{"enum":[0.00001,0.5]},"uniqueItems":true}`,
		`{"type":"array","items":{"enum":[1e-7,0.10,0.2,1e99,1.50]},"uniqueItems":true,"minItems":4}`,
		`{"type":"array","items":{"type":"string","pattern":"^\\n[\\u2028\\u2029]$"},"uniqueItems":true}`,
		`{"type":"array","items":{"anyOf":[{"type":"string","maxLength":1},{"const":"\u2028"},{"const":"\u2028\u0001"}]},"uniqueItems":true,"maxItems":3}`,
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
		if n := sampleValid(t, schema, v, words, end, rounds); n < rounds {
			t.Errorf("%s: %d texts end", schema, n)
		}
	}
}

// sampleValid samples texts from the masks of a schema: no mask is empty, and each text
// that ends is valid. It returns the number of these.
func sampleValid(t *testing.T, schema string, v *Vocabulary, words [][]byte, end int32, n int) (ended int) {
	t.Helper()
	g, err := ParseSchema([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	valid := newValidator(t, schema)
	for range n {
		text, ok := sample(t, g, v, words, end, rng)
		if !ok {
			continue
		}
		ended++
		if value, err := readJSON([]byte(text)); err != nil || !valid.holds(t, value) {
			t.Fatalf("%s: %s is not valid: %v", schema, text, err)
		}
	}
	return ended
}

// sample draws tokens that masks allow until the text ends. After many tokens it closes
// what it can. It reports false if the text does not end even so.
func sample(t *testing.T, g *Grammar, v *Vocabulary, words [][]byte, end int32, rng *rand.Rand) (string, bool) {
	t.Helper()
	m, err := NewMatcher(g, v)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for n := range 400 {
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
		if i := slices.IndexFunc(ids, func(id int32) bool { return id >= 256 }); i >= 0 && rng.IntN(2) == 0 {
			ids = ids[i:] // longer tokens
		}
		id := ids[rng.IntN(len(ids))]
		if i := slices.IndexFunc(ids, func(id int32) bool { return id < 256 && strings.Contains("]}\"", string(rune(id))) }); i >= 0 && n > 100 {
			id = ids[i]
		}
		if err := m.Accept(id); err != nil {
			t.Fatalf("after %s: %v", out, err)
		}
		if id == end {
			return string(out), true
		}
		out = append(out, words[id]...)
	}
	return "", false
}

// compareFilters checks that only suspects of a mask are filtered.
func compareFilters(t *testing.T, m *Matcher, text string) {
	t.Helper()
	tick := func() error { return nil }
	base := make([]uint64, m.v.Words())
	for _, p := range m.at {
		for k, word := range *p.at.mask.Load() {
			base[k] |= word
		}
	}
	got, err := m.g.filter(m.v, m.at, base, tick)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.g.filterOf(m.v, m.at, base, m.v.order, tick)
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
		m := schemaMatcher(t, c.schema, v)
		text := c.open
		if c.item != "" {
			text += listOf(maxUnique, c.item)
		}
		var err error
		if m.at, err = m.follow([]byte(text)); err != nil || len(m.at) == 0 {
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

// TestUsedWords checks that masks are found quickly where most words of an enum are used.
func TestUsedWords(t *testing.T) {
	t.Parallel()
	v := generatedWords(t)
	rng := rand.New(rand.NewPCG(3, 4))
	words := make([]string, 200)
	for i := range words {
		for range 10 {
			words[i] += string("etaoinshr"[rng.IntN(9)])
		}
	}
	slices.Sort(words)
	m := schemaMatcher(t, `{"type":"array","items":{"enum":["`+strings.Join(words, `","`)+`"]},"uniqueItems":true}`, v)
	var err error
	if m.at, err = m.follow([]byte(`["` + strings.Join(words[:190], `","`))); err != nil || len(m.at) == 0 {
		t.Fatal(err)
	}
	for _, c := range `","` {
		if err := m.Accept(c); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Mask(); err != nil {
			t.Fatal(err) // ErrCostly, if each used word were followed to its end for each token
		}
	}
}

// TestPoints checks masks where a bracket may open an array with unique items or another
// one: points share no text that differs, and no text has too many points.
func TestPoints(t *testing.T) {
	t.Parallel()
	v, words, _ := byteVocabulary(t, "[[1,2],[1,2]]", "[[1,2],[1,3]]", "[[1,1]]", "[[1,2]]")
	for schema, prefix := range map[string]string{
		`{"anyOf":[{"type":"array","items":{"type":"array","items":{"enum":[1,2,3]}},"uniqueItems":true},{"type":"array","items":{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true},"maxItems":1}]}`: "",
		`{"anyOf":[{"type":"array","items":{"type":"array","items":{"enum":[1,2,3]}},"maxItems":1},{"type":"array","items":{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true},"uniqueItems":true}]}`: "",
		`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/$defs/a"},"uniqueItems":true},{"type":"array","items":{"$ref":"#/$defs/a"},"maxItems":2}]}}}`:        "[[[[[[[[[[[[[[[[",
	} {
		m := schemaMatcher(t, schema, v)
		for i := range len(prefix) {
			if err := m.Accept(int32(prefix[i])); err != nil {
				t.Fatalf("%s: byte %d: %v", schema, i, err)
			}
		}
		mask, err := m.Mask()
		if err != nil {
			t.Fatal(err)
		}
		for id := range int32(len(words)) {
			after, err := m.follow(words[id])
			if err != nil {
				t.Fatal(err)
			}
			if got := mask[id/64]>>(id%64)&1 == 1; len(words[id]) > 0 && got != (len(after) > 0) {
				t.Errorf("%s: token %q: allowed %v, but it leads to %d points", schema, words[id], got, len(after))
			}
		}
	}
}
