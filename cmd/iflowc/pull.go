//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/cmd/hub"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

type pullCmd struct {
	Ref     string   `arg:"" help:"Repository: OWNER/NAME or OWNER/NAME@REVISION."`
	GGUF    string   `name:"gguf" help:"Fetch the GGUF file whose name contains this, such as q8_0." placeholder:"NAME"`
	Include []string `help:"Also fetch files that match these patterns." placeholder:"PATTERN"`
	Pickle  bool     `help:"Fetch pickle files even if safetensors exist."`
	Jobs    int      `short:"j" help:"Files to fetch at once." default:"4"`
	Offline bool     `help:"Use no network: print the folder of a model that was pulled before."`
	JSON    bool     `name:"json" help:"Print one JSON document."`

	Quant string `hidden:""` // means a weight type everywhere else; here it is an error
}

// Help describes the cache.
func (pullCmd) Help() string {
	return `Prints the model's folder. Other commands find the model by its name:

  iflowc pull HuggingFaceTB/SmolLM2-135M-Instruct
  iflowc chat HuggingFaceTB/SmolLM2-135M-Instruct

If a repository has several GGUF files, --gguf chooses one. pull converts
nothing; --quant of compile and run does.

Model specs of the library find it too:

  iflowc pull Qwen/Qwen3-0.6B && iflowc compile qwen3-0.6b

The cache is shared with the hub's Python client; set it with HF_HOME,
HF_HUB_CACHE, HF_ENDPOINT and HF_TOKEN. Broken transfers resume; every file is
checked against its hash.`
}

// Run fetches a model and prints its folder.
func (c *pullCmd) Run(ctx context.Context) error {
	ref, err := hub.ParseRef(c.Ref)
	if err != nil {
		return usageError{err}
	}
	if c.Quant != "" {
		return usageError{fmt.Errorf("--quant: pull fetches files as they are. --gguf %[1]s selects the GGUF file with that in its name; to convert weights, give --quant to compile or run", c.Quant)}
	}
	client, err := hub.FromEnvironment()
	if err != nil {
		return usageError{err}
	}
	client.Agent, client.Jobs = "iflowc/"+compiler.Version(), c.Jobs
	if c.Offline {
		dir, ok := client.Cached(ref)
		if !ok {
			return fmt.Errorf("%s is not in %s; omit --offline to fetch it", ref, client.Cache)
		}
		return c.print(pulledModel{Path: dir})
	}
	bar := newProgress()
	defer bar.done()
	client.Notice = func(text string) { fmt.Fprintln(os.Stderr, "iflowc:", printable.Text(text)) }
	client.Progress = bar.fetched
	bar.stage("asking for " + ref.String())
	list, err := client.List(ctx, ref)
	if err != nil {
		return err
	}
	files, notices, err := list.Choose(hub.Choice{Include: c.Include, Pickle: c.Pickle, GGUF: c.GGUF})
	if err != nil {
		return usageError{err}
	}
	bar.stage(fmt.Sprintf("fetching %d files of %s", len(files), ref))
	dir, err := client.Pull(ctx, list, files)
	if err != nil {
		return err
	}
	bar.done()
	for _, n := range notices {
		client.Notice(n)
	}
	out := pulledModel{Path: dir, Commit: list.Commit}
	for _, f := range files {
		out.Files = append(out.Files, pulledFile{f.Name, f.Size})
	}
	return c.print(out)
}

// A pulledModel is what the subcommand prints.
type pulledModel struct {
	Path   string       `json:"path"`
	Commit string       `json:"commit,omitempty"`
	Files  []pulledFile `json:"files,omitempty"`
}

type pulledFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func (c *pullCmd) print(p pulledModel) error {
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(p)
	}
	_, err := fmt.Println(p.Path)
	return err
}
