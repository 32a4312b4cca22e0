package expand

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files; read the difference")

// TestBroken compares the errors of broken modules with those in testdata; -update rewrites
// them. Each says where, in which instance, and what to do.
func TestBroken(t *testing.T) {
	t.Parallel()
	const file = "testdata/broken.txtar"
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out txtar.Archive
	cases := 0
	for _, f := range ar.Files {
		if strings.HasSuffix(f.Name, ".error") {
			continue
		}
		cases++
		text := string(f.Data)
		_, _, err := expanded(text, &testHost{
			tensors: map[string][]int{"dec.1.main.weight": {4, 8}, "dec.1.main.cube.weight": {2, 2, 2}},
			params:  map[string]any{"words": "on", "number": "many", "list": 3.0}, config: map[string]any{"hidden_size": 8.0},
		})
		if err == nil {
			t.Errorf("%s: no error", f.Name)
			continue
		}
		if msg := err.Error(); !strings.HasPrefix(msg, "m.ifl:") || strings.Contains(msg, "\n") && !strings.HasSuffix(msg, "^") {
			t.Errorf("%s: the error has no place: %s", f.Name, msg)
		}
		out.Files = append(out.Files, f, txtar.File{Name: f.Name + ".error", Data: []byte(err.Error() + "\n")})
	}
	if cases < 60 {
		t.Errorf("%d broken modules, want 60 or more", cases)
	}
	text := txtar.Format(&out)
	if *update {
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(txtar.Format(ar)), string(text)); d != "" {
		t.Errorf("errors (-want +got); -update rewrites them:\n%s", d)
	}
}

// TestAlibi compares with the slopes of Press et al. 2021 for 8 heads and the
// published extension for 12.
func TestAlibi(t *testing.T) {
	t.Parallel()
	results, _, err := expanded("module main() {\nyield alibi_slopes(12, 1)\n}", &testHost{})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := floats(results[0].([]any))
	if !ok || len(got) != 12 {
		t.Fatalf("have %v, want 12 numbers", results)
	}
	want := []float64{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625,
		math.Sqrt(0.5), math.Sqrt(0.5) / 2, math.Sqrt(0.5) / 4, math.Sqrt(0.5) / 8}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-15 {
			t.Errorf("slope %d: have %g, want %g", i, got[i], want[i])
		}
	}
}

// TestStarlark compares random expressions with what Starlark makes of them.
func TestStarlark(t *testing.T) {
	t.Parallel()
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 1))
	equal, failed := 0, 0
	for range 4000 {
		text := randomExpr(r, 4)
		got, _, err := expanded("module main() {\na = 3\nb = 2.5\nc = [1, 2, 3]\nd = \"word\"\nyield "+text+"\n}", &testHost{})
		env := starlark.StringDict{"a": starlark.MakeInt(3), "b": starlark.Float(2.5), "d": starlark.String("word"),
			"c": starlark.NewList([]starlark.Value{starlark.MakeInt(1), starlark.MakeInt(2), starlark.MakeInt(3)})}
		want, wantErr := starlark.EvalOptions(&syntax.FileOptions{}, &starlark.Thread{}, "x.star", text, env)
		if err != nil && narrower.MatchString(err.Error()) {
			continue
		}
		if (err != nil) != (wantErr != nil) {
			t.Errorf("seed %d: %s: %v (%v), Starlark has %v (%v)", seed, text, got, err, want, wantErr)
			continue
		}
		if err != nil {
			failed++
			continue
		}
		if equal++; !sameValue(got[0], want) {
			t.Errorf("seed %d: %s is %s, want %s", seed, text, show(got[0]), want)
		}
	}
	if equal < 1000 || failed < 100 {
		t.Errorf("%d expressions were equal, %d failed; want more of both", equal, failed)
	}
}

// narrower matches errors of what only Starlark can: build texts, order what is no number, and
// compute with truth values.
var narrower = regexp.MustCompile(`compares numbers|of a word|of (a|an) [a-z]+ and a word|function (min|max|float|int|abs) of a truth value`)

// sameValue reports whether a value is that of Starlark, with its type.
func sameValue(v any, s starlark.Value) bool {
	switch s := s.(type) {
	case starlark.NoneType:
		return v == nil
	case starlark.Bool:
		return v == bool(s)
	case starlark.Int:
		n, ok := s.Int64()
		return ok && v == int(n)
	case starlark.Float:
		x, ok := v.(float64)
		return ok && (x == float64(s) || math.Abs(x-float64(s)) <= 1e-12*math.Abs(x))
	case starlark.String:
		return v == string(s)
	case starlark.Indexable:
		l, ok := v.([]any)
		if !ok || len(l) != s.Len() {
			return false
		}
		for i, x := range l {
			if !sameValue(x, s.Index(i)) {
				return false
			}
		}
		return true
	}
	return false
}

// randomExpr returns an expression. Texts and truth values take part only where both languages
// agree: here they are no numbers, and are not ordered.
func randomExpr(r *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if depth == 0 || r.IntN(5) == 0 {
		return pick("0", "1", "2", "7", "-3", "0.5", "1.5", "4.0", "a", "b", "c", "d", `"word"`, "True", "False", "None", "[]", "[a, 2]")
	}
	x, y, z := randomExpr(r, depth-1), randomExpr(r, depth-1), randomExpr(r, depth-1)
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		return "(" + x + " " + pick("+", "-", "*", "/", "//") + " " + y + ")"
	case 4, 5:
		return "(" + x + " " + pick("<", ">", "<=", ">=", "==", "!=") + " " + y + ")"
	case 6:
		return "(" + x + " " + pick("and", "or") + " " + y + ")"
	case 7:
		return "(" + x + " if " + y + " else " + z + ")"
	case 8:
		return "(not " + x + ")"
	case 9:
		return "[" + x + " for e in " + y + "]"
	case 10:
		return "[e for e in range(5) if e " + pick("<", "!=", "in") + " " + x + "]"
	case 11:
		return pick("len", "abs", "int", "float", "any", "all", "bool") + "(" + x + ")"
	case 12:
		return pick("min", "max") + "(" + x + ", " + y + ")"
	}
	return "(" + x + " " + pick("in", "not in") + " " + y + ")"
}

// FuzzExpand expands texts that are damaged modules: each gives a result or an error.
func FuzzExpand(f *testing.F) {
	raw, err := os.ReadFile("testdata/broken.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range txtar.Parse(raw).Files {
		f.Add(string(c.Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, err := expanded(text, &testHost{tensors: map[string][]int{"dec.1.main.weight": {4, 8}}}); err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}

// TestDocs keeps the table of functions in docs/modules.md, which -update writes, and parses the
// page's example.
func TestDocs(t *testing.T) {
	t.Parallel()
	const page, mark = "../../docs/modules.md", "<!-- functions: written by TestDocs; go test ./ir/expand -run TestDocs -update -->\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(raw), mark)
	if !ok {
		t.Fatalf("%s has no table of functions", page)
	}
	files := map[string]string{}
	for i, block := range strings.Split(head, "```") {
		if i%2 == 1 && block[0] == '\n' { // the blocks of no language
			files[fmt.Sprintf("modules.md %d", i)] = block
		}
	}
	lib, err := NewLibrary(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lib.Names() {
		if _, err := lib.Module(name); err != nil {
			t.Error(err)
		}
	}
	if len(lib.Names()) < 2 {
		t.Errorf("%s has fewer than two examples", page)
	}
	want := head + mark + "\n" + functionTable()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Errorf("%s is out of date (-want +got); -update rewrites it:\n%s", page, d)
	}
}

// functionTable returns a table of the functions.
func functionTable() string {
	var b strings.Builder
	b.WriteString("| function | result |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		fmt.Fprintf(&b, "| `%s(%s)` | %s |\n", name, functions[name].args, functions[name].doc)
	}
	b.WriteString("| `size($key, needed)` | the size that a key of config.json states; None without the key, unless it is needed |\n")
	b.WriteString("| `stored(\"name\")`, `stored(@w)` | whether a tensor of this instance, or a weight that may be absent, is stored |\n")
	b.WriteString("| `tensor(\"name\", sizes)` | a stored tensor, perhaps with the sizes that it must have, for transforms outside of a weight's sources; false in conditions if it is not stored |\n")
	b.WriteString("| `each(\"name.{j}\", n)` | in a source: the tensors with the numbers below n |\n")
	b.WriteString("| `known(\"name\")` | whether a tensor is stored, which other layers need not have; it counts as read |\n")
	return b.String()
}
