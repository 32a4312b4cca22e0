//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/iflowc/iflowc/cmd/hub"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/spec"
)

type listCmd struct {
	Local bool `help:"List only models with weights on this machine."`
	JSON  bool `name:"json" help:"Print one JSON document."`
}

// Places of a library model's weights.
const (
	weightsEmbedded = "embedded" // in iflowc itself
	weightsPulled   = "pulled"   // in the hub's cache
	weightsNone     = ""
)

// A listed is one model of the library.
type listed struct {
	Name       string `json:"name"`
	Family     string `json:"family,omitempty"`
	Network    string `json:"network"`
	Parameters int64  `json:"parameters,omitempty"` // 0: unknown
	Weights    string `json:"weights,omitempty"`    // "embedded", "pulled", or "" if they are not on this machine
	Folder     string `json:"folder,omitempty"`     // of pulled weights
	Repository string `json:"repository,omitempty"` // of the hub; "": none
}

// Run lists the model library.
func (c *listCmd) Run() error {
	client, err := hub.FromEnvironment()
	if err != nil {
		return usageError{err}
	}
	list := []listed{}
	for _, m := range spec.Library() {
		l := listed{Name: m.Name, Family: m.Family, Network: m.Network, Parameters: int64(m.Parameters), Repository: m.Repository}
		switch dir, ok := cached(client, m.Repository); {
		case m.Embedded:
			l.Weights = weightsEmbedded
			if l.Parameters, err = parametersOf(m.Name); err != nil {
				return err
			}
		case ok && m.Spec.HoldsFiles(dir):
			l.Weights, l.Folder = weightsPulled, dir
		}
		if !c.Local || l.Weights != weightsNone {
			list = append(list, l)
		}
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(list)
	}
	return printList(list)
}

// parametersOf counts the parameters of a model that is embedded.
func parametersOf(name string) (int64, error) {
	m, err := compiler.Open(context.Background(), name, compiler.Options{})
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return m.Parameters(), nil
}

// printList prints a table, and the commands for its rows.
func printList(list []listed) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tFAMILY\tNETWORK\tPARAMETERS\tWEIGHTS\tREPOSITORY")
	for _, l := range list {
		network, moe, _ := strings.Cut(l.Network, ".")
		if network = strings.NewReplacer("_only", "", "_", "-").Replace(network); moe != "" {
			network += ", MoE"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, cmp.Or(l.Family, "-"), network, countText(l.Parameters), cmp.Or(l.Weights, "-"), cmp.Or(l.Repository, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Println(`
"iflowc run NAME" compiles and runs a model whose weights are here; "iflowc pull REPOSITORY" fetches others.`)
	return err
}

// countText shortens a number of parameters: 134.5M.
func countText(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1e9:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fB", float64(n)/1e9)
}

// cached finds the folder of a repository in the hub's cache.
func cached(client *hub.Client, repository string) (string, bool) {
	ref, err := hub.ParseRef(repository)
	if err != nil {
		return "", false
	}
	return client.Cached(ref)
}

// pulled finds the folder of a repository for the compiler.
func pulled(repository string) (string, bool) {
	client, err := hub.FromEnvironment()
	if err != nil {
		return "", false
	}
	return cached(client, repository)
}

// Help shows all steps with a model of the library.
func (listCmd) Help() string {
	return `Examples:

  iflowc list --local
  iflowc pull Qwen/Qwen3-0.6B && iflowc run qwen3-0.6b -p "Hello"`
}
