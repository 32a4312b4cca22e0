package hub

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Choice selects the files of a model.
type Choice struct {
	Include []string // patterns (path.Match) of further files, over the whole name or its last part
	Pickle  bool     // pickle files even if safetensors exist
	GGUF    string   // selects one of several GGUF files: the one whose name contains this
}

// described are the files besides the weights that a model needs.
var described = []string{"*.json", "*.txt", "*.model", "*.spm", "*.jinja", "*.tiktoken", "*.bpe", "*.vocab"}

// others are weights for other programs, and copies.
var others = []string{"*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.mlmodel", "*.tflite", "*.xml", "flax_model*", "tf_model*", "rust_model*",
	"consolidated*", "training_args.bin", "optimizer*", "scheduler*", "rng_state*", "events.out*"}

// folders contain copies of the model in other forms.
var folders = []string{"onnx/", "openvino/", "coreml/", "original/", "flax/", "tf/", "metal/", "runs/", "checkpoint-"}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		whole, _ := path.Match(p, name)
		last, _ := path.Match(p, path.Base(name))
		return whole || last
	})
}

func isPickle(name string) bool { return matches(name, []string{"*.bin", "*.pt", "*.pth", "*.ckpt"}) }

// Choose selects the files to fetch. The notices name files that are left out
// unexpectedly.
func (l *Listing) Choose(c Choice) (files []File, notices []string, err error) {
	for _, p := range c.Include {
		if _, err := path.Match(p, ""); err != nil {
			return nil, nil, fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	var safe, pickle, gguf []File
	for _, f := range l.Files {
		inOther := slices.ContainsFunc(folders, func(p string) bool { return strings.HasPrefix(f.Name, p) })
		switch {
		case matches(f.Name, c.Include):
			files = append(files, f)
		case inOther || matches(f.Name, others):
		case matches(f.Name, []string{"*.safetensors"}):
			safe = append(safe, f)
		case matches(f.Name, []string{"*.gguf"}):
			gguf = append(gguf, f)
		case isPickle(f.Name):
			pickle = append(pickle, f)
		case matches(f.Name, described) && f.Size < 1<<30:
			files = append(files, f)
		}
	}
	switch {
	case len(safe) > 0 && c.GGUF == "":
		files = append(files, safe...)
		if c.Pickle {
			files = append(files, pickle...)
		} else if len(pickle) > 0 {
			notices = append(notices, fmt.Sprintf("%d pickle files are left out, because safetensors exist; --pickle fetches them too", len(pickle)))
		}
	case len(gguf) > 0:
		one, err := chooseGGUF(gguf, c.GGUF)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.Ref, err)
		}
		files = append(files, one...)
	case len(pickle) > 0:
		files = append(files, pickle...)
		notices = append(notices, "the weights are pickle files; they are read without running anything in them")
	default:
		if len(files) == 0 {
			return nil, nil, fmt.Errorf("%s contains neither weights nor a model description", l.Ref)
		}
		notices = append(notices, "there are no weights in a known format (safetensors, GGUF, pickle)")
	}
	if len(files) > maxChosen {
		return nil, nil, fmt.Errorf("%s: %d files belong to the model; expected at most %d", l.Ref, len(files), maxChosen)
	}
	return files, notices, nil
}

// maxChosen is the maximum number of files of a model; DeepSeek-V3 has 163 shards.
const maxChosen = 4096

// chooseGGUF selects the GGUF file whose name contains part, or all its parts.
func chooseGGUF(all []File, part string) ([]File, error) {
	var found []File
	for _, f := range all {
		if strings.Contains(strings.ToLower(f.Name), strings.ToLower(part)) {
			found = append(found, f)
		}
	}
	families := map[string]bool{}
	for _, f := range found {
		families[partOf(f.Name)] = true
	}
	if len(families) == 1 {
		return found, nil
	}
	if len(found) == 0 {
		found = all
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("it has several GGUF files; select one with --gguf: %s", strings.Join(names[:min(len(names), 30)], ", "))
}

// partOf returns the name of a file without the number of its part
// (-00001-of-00003).
func partOf(name string) string {
	base, found := strings.CutSuffix(name, ".gguf")
	if i := strings.LastIndex(base, "-of-"); found && i > 6 {
		return base[:i-6]
	}
	return base
}
