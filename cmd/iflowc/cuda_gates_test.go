package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/runtime/build"
	"github.com/iflowc/iflowc/templates"
)

// TestCUDAGates: what nvcc makes of the kernels compiles without a warning, does
// not spill, and shows the instructions that the templates' headers promise. It
// needs nvcc, and for the instructions cuobjdump and nvdisasm beside it.
func TestCUDAGates(t *testing.T) {
	nvcc, err := build.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	models := []struct{ spec, quant string }{{"../../models/demo.yaml", "q4_b64"}}
	if *allCUDA {
		for _, q := range []string{"f32", "f16", "bf16", "q8_b32", "q8_b64", "q8_b32t2", "q6_b64", "q5_b64", "q5_b32", "q4_b32", "q3h_b64", "q3_b32", "q2_b32"} {
			models = append(models, struct{ spec, quant string }{"../../models/demo.yaml", q})
		}
		for _, f := range []string{"bert", "t5_gated", "mixtral", "deepseek_v2", "gpt_oss"} {
			models = append(models, struct{ spec, quant string }{"../../spec/testdata/families/" + f, "f16"})
		}
	}
	for _, m := range models {
		p, err := (&compileFlags{modelFlags: modelFlags{Spec: m.spec, Quant: m.quant}, Target: "cuda"}).generate()
		if err != nil {
			t.Fatal(err)
		}
		p.m.set.Close()
		for _, u := range p.cuda.Units {
			for _, arch := range []string{"sm_80", "sm_90a"} {
				t.Run(fmt.Sprintf("%s-%s-%s-%s", filepath.Base(m.spec), m.quant, u.Name, arch), func(t *testing.T) {
					t.Parallel()
					gate(t, nvcc.Path, u, arch)
				})
			}
		}
	}
}

// gate compiles a unit for a GPU and holds its kernels to what was promised.
func gate(t *testing.T, nvcc string, u codegen.CUDAUnit, arch string) {
	dir := t.TempDir()
	files := templates.CUDAHeaders()
	files["unit.cu"] = u.Source
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-arch=" + arch, "-cubin", "-Werror", "all-warnings", "-Xptxas", "-v", "-I.", "unit.cu", "-o", "unit.cubin"}, cudaFlags...)
	log := runIn(t, dir, nvcc, args...)
	for _, m := range regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`).FindAllStringSubmatch(log, -1) {
		if m[1] != "0" || m[2] != "0" {
			t.Errorf("%s for %s spills: %s", u.Name, arch, m[0])
		}
	}
	dump := filepath.Join(filepath.Dir(nvcc), "cuobjdump")
	if _, err := os.Stat(dump); err != nil {
		t.Logf("the promises of %s are not checked: no cuobjdump beside nvcc", u.Name)
		return
	}
	registers := map[string]int{}
	for _, m := range regexp.MustCompile(`Function (\S+):\s+REG:(\d+)`).FindAllStringSubmatch(runIn(t, dir, dump, "-res-usage", "unit.cubin"), -1) {
		registers[m[1]], _ = strconv.Atoi(m[2])
	}
	code := sass(runIn(t, dir, dump, "-sass", "unit.cubin"))
	for kernel, promises := range u.Promises {
		for what, n := range promises {
			if what == "REG" {
				if registers[kernel] > n || registers[kernel] == 0 {
					t.Errorf("%s for %s takes %d registers, promised at most %d", kernel, arch, registers[kernel], n)
				}
				continue
			}
			if have := len(regexp.MustCompile(`(?m)^`+what).FindAllString(code[kernel], -1)); have < n {
				t.Errorf("%s for %s has %d instructions %s, promised at least %d", kernel, arch, have, what, n)
			}
		}
	}
}

// sass gives the instructions of each kernel, one a line.
func sass(dump string) map[string]string {
	out, at := map[string]string{}, ""
	instruction := regexp.MustCompile(`^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)`)
	for line := range strings.Lines(dump) {
		if _, name, ok := strings.Cut(line, "Function : "); ok {
			at = strings.TrimSpace(name)
		}
		if m := instruction.FindStringSubmatch(line); m != nil {
			out[at] += m[1] + "\n"
		}
	}
	return out
}

func runIn(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, text)
	}
	return string(text)
}
