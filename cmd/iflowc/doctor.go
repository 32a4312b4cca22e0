//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type doctorCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// States of a finding.
const (
	findingOK      = "ok"
	findingNote    = "note"    // works, but could be better
	findingAbsent  = "absent"  // needed only for some uses
	findingMissing = "missing" // needed for compiling
)

// A finding is the result of one check.
type finding struct {
	Section string `json:"section"`
	State   string `json:"state"`
	What    string `json:"what"`
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy,omitempty"` // a command, or what to do
}

// Run looks for the tools that iflowc uses and says how to get missing ones.
func (c *doctorCmd) Run(ctx context.Context) error {
	var found []finding
	for _, part := range []struct {
		section string
		look    func(context.Context) []finding
	}{
		{"compiling", lookCompiling}, {"running", lookRunning}, {"disk", lookDisk}, {"GPUs", lookGPUs}, {"several processes", lookMPI},
	} {
		for _, f := range part.look(ctx) {
			f.Section = part.section
			found = append(found, f)
		}
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", " ")
		if err := e.Encode(found); err != nil {
			return err
		}
	} else {
		fmt.Print(printFindings(found))
	}
	missing := 0
	for _, f := range found {
		if f.State == findingMissing {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d requirements of compiling are missing", missing)
	}
	return nil
}

// printFindings returns the findings as text, section by section.
func printFindings(found []finding) string {
	var b strings.Builder
	last := ""
	for _, f := range found {
		if f.Section != last {
			last = f.Section
			fmt.Fprintf(&b, "%s\n", last)
		}
		fmt.Fprintf(&b, "  %-8s %-18s %s\n", f.State, f.What, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  %-8s %-18s → %s\n", "", "", f.Remedy)
		}
	}
	return b.String()
}
