package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// longestGap is the maximum gap between two consecutive steps in seconds. After a
// longer gap the service was idle.
const longestGap = 2e-3

// Samples reads the steps of a file written by `BIN serve --trace FILE`.
func Samples(path string) ([]Sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Events []struct {
			Cat  string  `json:"cat"`
			TS   float64 `json:"ts"`  // µs
			Dur  float64 `json:"dur"` // µs
			Args struct {
				Tokens int `json:"tokens"`
			} `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []Sample
	end := 0.0
	for _, e := range file.Events {
		if e.Cat != "step" || e.Args.Tokens < 1 || e.Dur <= 0 {
			continue
		}
		if gap := (e.TS - end) / 1e6; len(list) > 0 && gap > 0 && gap < longestGap {
			list[len(list)-1].Gap = gap
		}
		end = e.TS + e.Dur
		list = append(list, Sample{Tokens: e.Args.Tokens, Seconds: e.Dur / 1e6})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no steps; expected a file of serve --trace", path)
	}
	return list, nil
}

// FitFiles fits a latency to the steps of some traces and tests it on other traces.
func FitFiles(about string, fit, held []string) (*Fitted, error) {
	samples, err := readAll(fit)
	if err != nil {
		return nil, err
	}
	test, err := readAll(held)
	if err != nil {
		return nil, err
	}
	l, err := Fit(samples)
	if err != nil {
		return nil, err
	}
	f := &Fitted{About: about, Steps: len(samples), Held: len(test), Latency: *l}
	if len(test) > 0 {
		f.HeldError = round(l.Error(test))
	}
	return f, nil
}

func readAll(paths []string) (all []Sample, err error) {
	for _, p := range paths {
		list, err := Samples(p)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, list)
	}
	return all, nil
}
