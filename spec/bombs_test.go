package spec

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// TestSpecBombs: model specs that expand, nest, repeat or state numbers at any length are
// refused at little cost.
func TestSpecBombs(t *testing.T) {
	laughs := "hyper:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		laughs += fmt.Sprintf("  a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1, ", i)
		}
		return "hyper: {" + b.String() + "}"
	}
	digits := strings.Repeat("9", 1<<16)
	for what, c := range map[string][2]string{
		"laughs":             {laughs, "more than 65536 values"},
		"an alias of itself": {"hyper: &a {b: *a}", "more than 65536 values"},
		"names":              {many(8_000), "network_structure.type: missing"},
		"too many names":     {"hyper: {a: [" + strings.Repeat("x, ", 1<<16) + "]}", "more than 65536 values"},
		"one name":           {"hyper: {" + strings.Repeat("a: 1, ", 4_000) + "}", "hyper.a: given twice"},
		"lists":              {strings.Repeat("[", 1<<16), "exceeded max depth"},
		"mappings":           {strings.Repeat("{a: ", 1<<16), "exceeded max depth"},
		"sequences":          {strings.Repeat("- ", 1<<16), "exceeded max depth"},
		"keys":               {strings.Repeat("? ", 1<<16), "exceeded max depth"},
		"documents":          {strings.Repeat("---\n", 1<<14), "want a mapping"},
		"anchors":            {strings.Repeat("&a ", 1<<14), "want a mapping"},
		"a whole number":     {"max_context_len: " + digits, "want an integer"},
		"a float":            {"hyper: {x: 1e" + digits + "}", "network_structure.type: missing"},
		"brackets":           {"network_structure: {type: llama, rope_theta: '= " + strings.Repeat("(", 1<<13) + "'}", "rope_theta"},
		"calls":              {"network_structure: {type: llama, rope_theta: '= " + strings.Repeat("sqrt(", 800) + "'}", "rope_theta"},
		"a sum":              {"network_structure: {type: llama, rope_theta: '= " + strings.Repeat("1+", 1<<10) + "1'}", ""},
		"a long list":        {"network_structure: {type: llama, rope_theta: '= len(range(60000)) + len([i for i in range(60000)])', sliding_window: '= len([i for i in range(60000)])'}", "steps"},
		"a text":             {"kv_type: " + strings.Repeat("x", 1<<16), "kv_type"},
		"a key":              {strings.Repeat("x", 1000) + ": 1", "unknown key"},
		"a name of a type":   {"network_structure: {type: " + strings.Repeat("x", 1<<16) + "}", "network_structure.type"},
		"binary":             {"hyper: {x: !!binary " + strings.Repeat("A", 1<<16-1) + "}", "hyper"},
		"devices":            {"devices: " + strings.Repeat("0&1;", 1<<14), "devices"},
		"a pattern":          {"ignore_tensors: ['" + strings.Repeat("*a", 1<<16) + "']\nfamily: llama", ""},
	} {
		path := filepath.Join(hostiletest.Folder(t, map[string][]byte{"m.yaml": []byte(c[0]), "config.json": []byte("{}")}), "m.yaml")
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[0]), func() error { _, err := Load(path, Options{}); return err }, c[1])
		})
	}
}

// TestGraphBombs: a graph whose references expand, and expressions in it that nest.
func TestGraphBombs(t *testing.T) {
	for want, graph := range map[string]string{
		"a value of 65536 bytes; want a number or a name": strings.Repeat("$x ", 1<<14),
		"more than 262144 steps":                          strings.Repeat("${len(range(60000))}", 1<<10),
		"want at most 4096":                               "${" + strings.Repeat("(", 1<<16) + "}",
		"$y: missing":                                     strings.Repeat("$y ", 1<<14),
	} {
		src := fmt.Sprintf("hyper: {hidden_size: 4, num_hidden_layers: 2, num_attention_heads: 2, vocab_size: 6, x: %s}\nnetwork_structure: {type: decoder_only}\ngraph: %s\n", strings.Repeat("x", 1<<16), graph)
		hostiletest.Refused(t, len(src), func() error { return derive(t, "m.yaml", src, nil) }, want)
	}
}

// TestConfigBombs: the same of config.json.
func TestConfigBombs(t *testing.T) {
	const some = `"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100`
	digits := strings.Repeat("9", 1<<16)
	for what, c := range map[string][2]string{
		"lists":          {`{"a": ` + strings.Repeat("[", 1<<16), "max depth"},
		"objects":        {strings.Repeat(`{"a":`, 1<<16), "max depth"},
		"a whole number": {`{` + some + `, "num_hidden_layers": ` + digits + `}`, "config.json"},
		"an exponent":    {`{` + some + `, "num_hidden_layers": 1e` + digits + `}`, "config.json"},
		"layers":         {`{` + some + `, "num_hidden_layers": 1e12}`, "num_hidden_layers"},
		"more layers":    {`{` + some + `, "num_hidden_layers": 100000000}`, "num_hidden_layers"},
		"experts":        {`{"num_local_experts": 1e15, "num_experts_per_tok": 1e14, "num_hidden_layers": 2, ` + some + `}`, ""},
		"one name":       {`{` + strings.Repeat(`"num_hidden_layers": 2, `, 1<<13) + some + `}`, ""},
		"infinities":     {`{` + some + `, "a": [` + strings.Repeat("Infinity, ", 1<<13) + `NaN]}`, ""},
		"quotes":         {`{"a": "` + strings.Repeat(`\"`, 1<<16), "not a JSON object"},
		"a model type":   {`{"model_type": "` + strings.Repeat("x", 1<<16) + `"}`, "config.json"},
		"layer types":    {`{` + some + `, "num_hidden_layers": 2, "layer_types": [` + strings.Repeat(`"full_attention",`, 1<<13) + `"x"]}`, ""},
		"nested text":    {strings.Repeat(`{"text_config":`, 9000) + `{}` + strings.Repeat("}", 9000), "config.json"},
	} {
		dir := hostiletest.Folder(t, map[string][]byte{"config.json": []byte(c[0])})
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[0]), func() error {
				s, err := Load(dir, Options{})
				if err == nil {
					_, err = Resolve(s, parseHeaders(t, smallHeaders))
				}
				return err
			}, c[1])
		})
	}
}
