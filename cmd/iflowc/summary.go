//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
)

// describe formats a result for people: sizes, memory, expected speed, smaller
// types, and the next commands.
func describe(r *compiler.Result, emit string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	where := "embedded"
	if r.Weights != "" {
		where = "in " + fromHere(r.Weights)
	}
	line("%s: %s, compiled in %.1f s", fromHere(r.Binary), compiler.SizeText(r.BinaryBytes), r.Seconds)
	size := compiler.SizeText(r.WeightBytes) + " of "
	if r.WeightBytes == 0 {
		size, where = "", "not packed"
	}
	line("weights: %s%s, %.1f bits per weight, %s", size, r.WeightType, r.BitsPerWeight, where)
	kv := ""
	if r.StateBytes > 0 {
		kv = fmt.Sprintf(" (KV cache %s)", compiler.SizeText(r.StateBytes))
	}
	line("memory: %s for a sequence of %d tokens%s", compiler.SizeText(r.MemoryBytes), r.Context, kv)
	if r.BoundTokS > 0 {
		line("bandwidth bound: %.0f tok/s at batch 1 (%.0f GB/s)", r.BoundTokS, r.BoundGBS)
	}
	if len(r.Smaller) > 0 {
		var sizes []string
		for _, s := range r.Smaller {
			text := fmt.Sprintf("--quant %s needs %s", s.Quant, compiler.SizeText(s.WeightBytes))
			if r.Network == "decoder_only" {
				text += fmt.Sprintf(" and decodes up to %.1fx as fast", s.Speedup)
			}
			sizes = append(sizes, text)
		}
		line("smaller: %s (loss: docs/quantization.md)", strings.Join(sizes, ", "))
	}
	if next := nextCalls(r, emit); next != "" {
		line("next: %s", next)
	}
	return b.String()
}

// nextCalls returns calls of the new binary; "" if it cannot run on this
// machine.
func nextCalls(r *compiler.Result, emit string) string {
	if emit != "binary" || toolchain.TargetFromEnv() != (toolchain.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}) {
		return ""
	}
	program := fromHere(r.Binary)
	if !strings.ContainsRune(program, filepath.Separator) {
		program = "./" + program
	}
	first := `embed "Hello"`
	switch {
	case r.Network == "decoder_only" && r.ChatTemplate:
		first = "chat"
	case r.Network == "decoder_only":
		first = `generate -p "Once upon a time"`
	case r.Network == "encoder_decoder":
		first = `translate "Hello"`
	}
	return fmt.Sprintf("%[1]s %[2]s, %[1]s serve, or %[1]s --help", program, first)
}

// fromHere returns a path relative to the working directory, if it is inside.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
