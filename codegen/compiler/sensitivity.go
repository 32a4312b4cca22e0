package compiler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/sensitivity"
	"github.com/iflowc/iflowc/runtime/kit/hostmem"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// The measurement of sensitivity. Its size depends on the model, not on the machine, so that
// the choice does not either.
const (
	layerParts        = 8    // parts of the layers with types of their own
	sensitivityWindow = 256  // tokens
	sensitivityNoise  = 0.07 // as large as the rounding error of 4 bits
	maxTokens         = 512
	minTokens         = 256

	// maxProducts bounds parameters · tokens · passes. Two cores of a Zen 4 (200 · 10⁹
	// operations per second in f16) take three minutes for it.
	maxProducts = 18e12
)

// curveNoise are the errors of all matrices at once: about those of 6 to 2 bits.
var curveNoise = []float64{0.0175, 0.035, 0.07, 0.14, 0.28}

// planSensitivity chooses the parts of the layers and the tokens, and makes the units.
func (b *budgeter) planSensitivity() (*sensitivity.Plan, error) {
	p := &sensitivity.Plan{Window: sensitivityWindow, Noise: sensitivityNoise, Curve: curveNoise}
	params := float64(b.float.Manifest().Params)
	for parts := layerParts; ; parts /= 2 {
		if err := b.makeUnits(parts); err != nil {
			return nil, err
		}
		tokens := maxProducts / (params * float64(len(b.units)+len(curveNoise)+1))
		if p.Tokens = int(min(maxTokens, tokens)); p.Tokens >= minTokens || parts == 1 {
			break
		}
	}
	p.Tokens = max(p.Tokens/sensitivityWindow*sensitivityWindow, minTokens)
	for _, u := range b.units {
		p.Units = append(p.Units, sensitivity.Unit{Weights: u.names(), Lo: u.lo, Hi: max(u.hi, 1)})
	}
	return p, nil
}

// unmeasured returns why the sensitivity of the model cannot be measured here, or "".
func (b *budgeter) unmeasured() string {
	size := weightBytes(b.float.whole.CPU.Manifest.Weights)
	network, _, _ := strings.Cut(b.stored.Net.Topology(), ".")
	switch here := hostmem.Available(); {
	case network != "decoder_only":
		return "only decoders can be measured"
	case here > 0 && size > here/5*4:
		return fmt.Sprintf("its weights in f16 (%.1f GB) exceed 4/5 of the available memory (%.1f GB)", float64(size)/1e9, float64(here)/1e9)
	}
	if t, err := b.stored.loadTokenizer(); err != nil || t == nil {
		return "it has no tokenizer"
	}
	return ""
}

// sensitivities returns the measurement of the units: from the cache or, if this machine can
// measure the model, of a binary in f16. Otherwise it returns why not.
func (b *budgeter) sensitivities(ctx context.Context, plan *sensitivity.Plan) (s *sensitivity.Result, why string, err error) {
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return nil, "", err
	}
	defer cache.Close()
	input, err := json.Marshal(plan)
	if err != nil {
		return nil, "", err
	}
	print, err := checkpoint.Fingerprint(b.stored.set.Files())
	if err != nil {
		return nil, "", err
	}
	key := toolchain.Key("sensitivity 1", b.float.whole.CPU.Step, print, string(input), string(calibrationText))
	if !regular.Has(cache.Path("sensitivity", key, ".json")) {
		if why := b.unmeasured(); why != "" {
			return nil, why, nil
		}
	}
	out, err := cache.Make("sensitivity", key, ".json", func(dir, out string) error {
		for name, data := range map[string][]byte{"plan.json": input, "text": calibrationText} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				return err
			}
		}
		return b.runSensitivity(ctx, dir, out)
	})
	if err != nil {
		return nil, "", err
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, "", err
	}
	s, err = readSensitivities(plan, data)
	return s, "", err
}

// readSensitivities parses the result of a plan.
func readSensitivities(p *sensitivity.Plan, data []byte) (*sensitivity.Result, error) {
	s := &sensitivity.Result{}
	if err := json.Unmarshal(data, s); err != nil || len(s.Units) != len(p.Units) || len(s.Curve) != len(p.Curve) {
		return nil, fmt.Errorf("bug: the subcommand sensitivity printed %q", data)
	}
	return s, nil
}

// runSensitivity builds the model in f16 in a folder, measures the plan there, and writes the
// result to a file.
func (b *budgeter) runSensitivity(ctx context.Context, dir, out string) error {
	b.float.opt.Out = filepath.Join(dir, "model")
	if _, err := b.float.Build(ctx); err != nil {
		return err
	}
	b.opt.progress(Progress{Stage: "measuring sensitivity"})
	cmd := exec.CommandContext(ctx, b.float.opt.Out, "sensitivity", filepath.Join(dir, "plan.json"), filepath.Join(dir, "text"))
	var result bytes.Buffer
	cmd.Stdout, cmd.Stderr = &result, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measuring the sensitivity of the matrices: %w", cmp.Or(ctx.Err(), err))
	}
	return os.WriteFile(out, result.Bytes(), 0o644)
}

// significant rounds to three digits, so that the last bits of logarithms on another
// machine do not change a choice.
func significant(x float64) float64 {
	if x <= 0 || math.IsInf(x, 0) {
		return max(x, 0)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}

// usualLoss is the KL divergence for errors of sensitivityNoise in all matrices: 0.34 nats
// with SmolLM2-135M and 0.23 with the demo model. Larger models lose less.
const usualLoss = 0.25

// usual returns estimates in place of measurements: a loss in proportion to the number of
// weights.
func (b *budgeter) usual() *sensitivity.Result {
	s := &sensitivity.Result{}
	total := int64(0)
	for _, u := range b.units {
		total += u.weights
	}
	for _, u := range b.units {
		s.Units = append(s.Units, usualLoss*float64(u.weights)/float64(max(total, 1)))
	}
	return s
}
