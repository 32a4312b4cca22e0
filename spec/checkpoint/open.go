package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// A format recognizes files by their first bytes and reads them.
type format struct {
	name  string
	match func(m *mapping) bool
	read  func(m *mapping) (*contents, error)
}

// formats are tried in order. The oldest form of llama2.c has no magic number and
// is tried last.
var formats = []format{
	{"gguf", func(m *mapping) bool { return hasAnyPrefix(m.data, "GGUF", "ggml", "lmgg", "fmgg", "tjgg") }, readGGUF},
	{"pickle", looksLikePickle, readPickle},
	{"safetensors", looksLikeSafetensors, readSafetensors},
	{"llama2.c", looksLikeLlama2c, readLlama2c},
}

func hasAnyPrefix(data []byte, prefixes ...string) bool {
	for _, p := range prefixes {
		if bytes.HasPrefix(data, []byte(p)) {
			return true
		}
	}
	return false
}

// Open reads the tensors of one or more files: safetensors, GGUF, PyTorch and
// llama2.c files, or a *.index.json that lists shards. A single folder is opened
// with OpenDir. A single GGUF file named NAME-00001-of-0000N.gguf is opened with
// its other parts. All files must have the same format.
func Open(paths ...string) (*Set, error) {
	if len(paths) == 0 {
		return nil, errors.New("no weight files given")
	}
	if len(paths) == 1 {
		if st, err := os.Stat(paths[0]); err == nil && st.IsDir() {
			return OpenDir(paths[0])
		}
	}
	if SplitGGUF(paths) {
		var err error
		if paths, err = parts(paths[0]); err != nil {
			return nil, err
		}
	}
	s := &Set{index: map[string]int{}, meta: map[string]any{}}
	for _, p := range paths {
		open := s.openFile
		if strings.HasSuffix(p, ".index.json") {
			open = s.openIndex
		}
		if err := open(p); err != nil {
			s.Close()
			return nil, err
		}
	}
	if err := s.joinMXFP4(); err != nil {
		s.Close()
		return nil, err
	}
	s.sort()
	if err := s.adoptQuantized(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// candidates are the file names that OpenDir looks for, in order of preference.
var candidates = []string{
	"model.safetensors", "model.safetensors.index.json", "*.safetensors.index.json", "*.safetensors",
	"*.gguf", "pytorch_model.bin", "pytorch_model.bin.index.json", "*.bin.index.json", "model.bin", "*.bin", "*.pt", "*.pth",
}

// OpenDir opens the weights of a model folder. It opens the first of these that
// exists: model.safetensors (whole or else sharded), another safetensors file, a GGUF
// file, pytorch_model.bin (whole or else sharded), a llama2.c .bin file.
func OpenDir(dir string) (*Set, error) {
	for _, pattern := range candidates {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(p string) bool {
			base := filepath.Base(p)
			return base == "tokenizer.bin" || base == "training_args.bin" || base == "optimizer.bin" || base == "scheduler.bin"
		})
		if len(found) == 0 {
			continue
		}
		if len(found) > 1 && !SplitGGUF(found) && !sameShards(found) {
			return nil, fmt.Errorf("%s: %d files match %s (%s, %s, …); name the one to use", dir, len(found), pattern, filepath.Base(found[0]), filepath.Base(found[1]))
		}
		return Open(found...)
	}
	switch at, err := os.Stat(dir); {
	case err != nil:
		return nil, err
	case !at.IsDir():
		return nil, fmt.Errorf("%s is a file, not a model folder; give the folder, and list the file in the model spec's model_files", dir)
	}
	return nil, fmt.Errorf("%s: %w; looked for %s", dir, ErrNoWeights, strings.Join(candidates, ", "))
}

// ErrNoWeights is returned for a folder without weight files.
var ErrNoWeights = errors.New("no weights")

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// partName matches the end of the name of a part of a split GGUF model.
var partName = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// SplitGGUF reports whether all paths are parts of one split GGUF model.
func SplitGGUF(paths []string) bool {
	first := partName.FindStringSubmatch(paths[0])
	for _, p := range paths {
		if m := partName.FindStringSubmatch(p); m == nil || m[1] != first[1] || m[3] != first[3] {
			return false
		}
	}
	return true
}

// parts returns all files of a split GGUF model, given the first one. Only that has the
// model's metadata.
func parts(path string) ([]string, error) {
	m := partName.FindStringSubmatch(path)
	n, _ := strconv.Atoi(m[3])
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3])
	}
	if n < 1 || path != all[0] {
		return nil, fmt.Errorf("%s is part %s of %d of a split model; give the first one, %s-00001-of-%s.gguf", path, strings.TrimLeft(m[2], "0"), n, filepath.Base(m[1]), m[3])
	}
	return all, nil
}

// sameShards reports whether the names are all N files NAME-00001-of-0000N.ext.
func sameShards(paths []string) bool {
	for i, p := range paths {
		ext := filepath.Ext(p)
		want := fmt.Sprintf("-%05d-of-%05d%s", i+1, len(paths), ext)
		if !strings.HasSuffix(p, want) {
			return false
		}
	}
	return true
}

func (s *Set) openFile(path string) error {
	m, err := openMapping(path)
	if err != nil {
		return err
	}
	s.maps = append(s.maps, m)
	s.paths = append(s.paths, path)
	if target := regular.Elsewhere(filepath.Dir(path), path); target != "" {
		s.notes = append(s.notes, fmt.Sprintf("%s is a link to %s", path, target))
	}
	if hint := tensorfile.Hint(m.data); hint != "" {
		return m.errorf("not a weight file but %s", hint)
	}
	for _, f := range formats {
		if !f.match(m) {
			continue
		}
		if s.format != "" && s.format != f.name {
			return m.errorf("a %s file among %s files; all files of a model must be of one format", f.name, s.format)
		}
		s.format = f.name
		c, err := f.read(m)
		if err != nil {
			return err
		}
		return s.add(m, c)
	}
	return m.errorf("not a weight file: it begins with %q; expected safetensors, GGUF, PyTorch or llama2.c", m.data[:min(len(m.data), 16)])
}

// maxIndex is the maximum size of a shard index; 500,000 tensors need 50 MB.
const maxIndex = 64 << 20

// openIndex reads a *.index.json and opens the shards in its weight_map.
func (s *Set) openIndex(path string) error {
	data, err := regular.ReadIn(filepath.Dir(path), filepath.Base(path), maxIndex)
	if err != nil {
		return err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("%s: not a shard index: %w", path, err)
	}
	if len(index.WeightMap) == 0 {
		return fmt.Errorf("%s: missing or empty weight_map; want tensor names and their files", path)
	}
	s.paths = append(s.paths, path)
	var shards []string
	for name, shard := range index.WeightMap {
		if !filepath.IsLocal(shard) {
			return fmt.Errorf("%s: tensor %q is mapped to %q, outside the model's folder", path, name, shard)
		}
		index.WeightMap[name] = filepath.Clean(shard)
		shards = append(shards, index.WeightMap[name])
	}
	slices.Sort(shards)
	for _, shard := range slices.Compact(shards) {
		s.elsewhere = func(name string) bool { at, listed := index.WeightMap[name]; return listed && at != shard }
		err := s.openFile(filepath.Join(filepath.Dir(path), shard))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: shard %s is missing; download it too", path, shard)
		}
		if err != nil {
			return err
		}
	}
	s.elsewhere = nil
	for name := range index.WeightMap {
		if _, ok := s.index[name]; !ok {
			s.absent = append(s.absent, name)
		}
	}
	if slices.Sort(s.absent); len(s.absent) > 0 {
		s.note("%s: %d tensors of the index are not in their shards, such as %q; an error names one that the model needs", path, len(s.absent), s.absent[0])
	}
	return nil
}
