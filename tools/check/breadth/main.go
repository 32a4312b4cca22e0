// Command breadth compares model folders with the outputs that transformers
// computes from them, as tools/gen/reference/breadth.py makes them:
//
//	go run ./tools/check/breadth [-only REGEXP] [-v] DIR
//	go run ./tools/check/breadth -iflowc BINARY [-with "--target cuda-emu"] DIR
//
// Without -iflowc the folder's module is interpreted, which takes a moment a
// model; with it every folder is compiled, with the flags of -with, and its
// binary asked. A folder that cannot be split as --devices says is counted
// apart. Arrays must agree within 1e-4 + 1e-4 of the largest expected value, and
// greedy tokens must be equal. It prints a line a failure and the count, and ends
// with 1 when any folder failed.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// expected is the part of an expected.json that is compared.
type expected struct {
	Task   string
	Inputs struct {
		Prompt struct {
			IDs       []int
			Types     []int `json:"token_type_ids"`
			Positions []int `json:"logits_positions"`
		}
		MLM struct {
			Positions []int `json:"mask_positions"`
		}
		Batch struct{ IDs [][]int }
	}
	IDs struct {
		Greedy []int
		Batch  [][]int `json:"batch.greedy"`
	}
	Arrays map[string]struct {
		Values string `json:"f32_b64"`
	}
}

// A model returns the outputs of a per-model binary.
type model interface {
	// logits returns the logits of the last positions after the ids.
	logits(ids []int, last int) ([][]float64, error)
	// greedy returns the n tokens that follow the ids.
	greedy(ids []int, n int) ([]int, error)
	// encode returns an encoder's output of that name: hidden of every token, logits of
	// the rows, pooled or classes of the text.
	encode(output string, ids, types, rows []int) ([][]float64, error)
	close()
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("breadth: ")
	only := flag.String("only", "", "names of folders to compare")
	tool := flag.String("iflowc", "", "compile with this iflowc and ask the binary")
	with := flag.String("with", "", "more flags of iflowc compile, as --devices 0&1")
	verbose := flag.Bool("v", false, "name the folders that pass, too")
	jobs := flag.Int("j", 2, "folders at a time")
	flag.Parse()
	names, err := regexp.Compile(*only)
	if err != nil || flag.NArg() != 1 {
		log.Fatalf("want one folder of folders, and a regular expression for -only (%v)", err)
	}
	dirs, err := filepath.Glob(filepath.Join(flag.Arg(0), "*", "expected.json"))
	if err != nil {
		log.Fatal(err)
	}
	dirs = slices.DeleteFunc(dirs, func(d string) bool { return !names.MatchString(filepath.Base(filepath.Dir(d))) })
	open := interpret
	if *tool != "" {
		open = func(dir string) (model, error) { return compile(*tool, dir, strings.Fields(*with)) }
	}
	failed, refused := run(dirs, open, *verbose, *jobs)
	fmt.Printf("%d/%d folders pass, %d cannot be split\n", len(dirs)-failed-refused, len(dirs), refused)
	if failed > 0 || refused == len(dirs) {
		os.Exit(1)
	}
}

// run compares the folders, several at a time. It counts failures and folders that
// cannot be split.
func run(files []string, open func(dir string) (model, error), verbose bool, jobs int) (failed, refused int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	work := make(chan string)
	for range jobs {
		wg.Go(func() {
			for file := range work {
				dir := filepath.Dir(file)
				err := check(dir, open)
				mu.Lock()
				switch {
				case errors.Is(err, errSplit):
					refused++
					fmt.Printf("none %-32s %v\n", filepath.Base(dir), err)
				case err != nil:
					failed++
					fmt.Printf("FAIL %-32s %v\n", filepath.Base(dir), err)
				case verbose:
					fmt.Printf("ok   %s\n", filepath.Base(dir))
				}
				mu.Unlock()
			}
		})
	}
	for _, f := range files {
		work <- f
	}
	close(work)
	wg.Wait()
	return failed, refused
}

// check compares one folder; the error describes the difference.
func check(dir string, open func(dir string) (model, error)) (err error) {
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		return err
	}
	var want expected
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	if want.Task != "causal-lm" && want.Task != "encoder" {
		return fmt.Errorf("task %q; this compares causal-lm and encoder", want.Task)
	}
	m, err := open(dir)
	if err != nil {
		return err
	}
	defer m.close()
	if want.Task == "encoder" {
		return checkEncoder(m, &want)
	}
	prompt := want.Inputs.Prompt
	got, err := m.logits(prompt.IDs, len(prompt.IDs)-prompt.Positions[0])
	if err != nil {
		return err
	}
	values, err := floats(want.Arrays["prompt.logits"].Values)
	if err == nil {
		err = near(slices.Concat(got...), values)
	}
	if err != nil {
		return err
	}
	if err := sameTokens(m, prompt.IDs, want.IDs.Greedy); err != nil {
		return err
	}
	for i, ids := range want.Inputs.Batch.IDs {
		if err := sameTokens(m, ids, want.IDs.Batch[i]); err != nil {
			return fmt.Errorf("batch %d: %w", i, err)
		}
	}
	return nil
}

func sameTokens(m model, ids, want []int) error {
	got, err := m.greedy(ids, len(want))
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("greedy %v, want %v", got, want)
	}
	return err
}

func floats(b64 string) ([]float64, error) {
	raw, err := base64.StdEncoding.DecodeString(b64)
	var out []float64
	for ; len(raw) >= 4; raw = raw[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
	}
	return out, err
}

func near(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	worst, largest := 0.0, 0.0
	for i, w := range want {
		worst, largest = max(worst, math.Abs(got[i]-w)), max(largest, math.Abs(w))
	}
	if limit := 1e-4 + 1e-4*largest; !(worst <= limit) {
		return fmt.Errorf("values differ by %.2e, want at most %.2e", worst, limit)
	}
	return nil
}
