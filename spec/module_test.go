package spec

import (
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/models"
)

// TestModules checks the library of modules and those of families: each can be parsed, none is longer than 40 lines,
// and their names are not those of ops or functions.
func TestModules(t *testing.T) {
	t.Parallel()
	libraries := []*expand.Library{library()}
	for name := range models.FamilyModules() {
		f, ok := familyNamed(name)
		if !ok {
			t.Errorf("models/families/%s.ifl is beside no %s.yaml", name, name)
			continue
		}
		libraries = append(libraries, f.modules())
	}
	for _, lib := range libraries {
		checkModules(t, lib)
	}
	for path, name := range irNames() {
		if path == "" || strings.HasPrefix(path, ".") {
			t.Errorf("names.yaml: %q: %q", path, name)
		}
	}
	if len(models.Modules()) == 0 {
		t.Error("no files of modules")
	}
}

func checkModules(t *testing.T, lib *expand.Library) {
	t.Helper()
	for _, name := range lib.Names() {
		m, err := lib.Module(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(m.Text[strings.Index(m.Text, "module "+name):], "\n") + 1; n > 40 {
			t.Errorf("module %s has %d lines; want at most 40: split it where the idea splits", name, n)
		}
		if ops.Table.Lookup(name) != nil || expand.IsFunction(name) {
			t.Errorf("module %s has the name of an op or a function", name)
		}
		if m.Doc == "" {
			t.Errorf("module %s has no comment", name)
		}
	}
}

// TestModuleErrors changes keys of models and expects the errors of their modules.
func TestModuleErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		family string
		change func(m *Model)
		want   string
	}{
		{"qwen3_next", func(m *Model) { m.Net.Params["linear_attention.key_heads"] = 3 }, "heads must be a multiple of key_heads"},
		{"qwen3_next", func(m *Model) { m.Net.Params["linear_attention.heads"] = 0 }, "heads must be a multiple of key_heads, and key_dim 1 or more (heads 0"},
		{"qwen3_next", func(m *Model) { delete(m.tensors, "dec.0.linear_attn.wo.weight") }, "tensor dec.0.linear_attn.wo.weight: missing; want it stored as"},
		{"falcon_h1", func(m *Model) { m.Net.Params["ssd.groups"] = 4 }, "heads must be a multiple of groups (groups 4, heads 6)"},
		{"falcon_h1", func(m *Model) { m.Spec.Config["ssm_multipliers"] = []any{1.0, 2.0} }, "want 5 ssm_multipliers"},
		{"falcon_h1", func(m *Model) { m.Net.Params["ssd.state_size"] = 5 }, "(n 68, taps 4)"},
		{"gpt_oss", func(m *Model) { delete(m.tensors, "dec.0.self_attn.sinks.weight") }, "tensor dec.0.self_attn.sinks.weight: missing"},
		{"longcat_flash", func(m *Model) { m.Spec.Config["zero_expert_num"] = 4096.0 }, "at most 4096 in all"},
		{"deepseek_v4", func(m *Model) { m.Spec.Config["hc_eps"] = -1.0 }, "no negative floor"},
		{"deberta_v2_conv", func(m *Model) { m.Spec.Config["conv_groups"] = -1.0 }, "conv_groups does not divide the width"},
		{"rwkv7", func(m *Model) { m.Spec.Config["head_dim"] = 7.0 }, "the width must be a multiple of head_dim (head_dim 7, n 16)"},
		{"bert_mlm", func(m *Model) { m.Net.Params["mixer_pattern"] = []string{"short_conv"} }, "an encoder has attention"},
		{"recurrent_gemma", func(m *Model) { m.Spec.Config["num_attention_heads"] = 5.0 }, "the width must be a multiple of blocks"},
	} {
		m, _ := resolved(t, "testdata/families/"+c.family, Options{Quant: "f32"})
		c.change(m)
		_, err := Lower(m)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s in it", c.family, err, strconv.Quote(c.want))
		}
	}
}
