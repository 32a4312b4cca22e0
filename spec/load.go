package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/models"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"gopkg.in/yaml.v3"
)

// Load reads a model spec: a YAML file, an Inferflow model_spec.json, a
// Hugging Face folder, a GGUF or llama2.c file, a folder with one such file,
// or a name of the model library. Hyper-parameters come from config.json or
// from the weight file's metadata; no weight is read.
func Load(path string, opt Options) (*Spec, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return loadLibrary(path, opt, err)
	case st.IsDir():
		return loadDir(path, opt)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gguf":
		return loadWeightFile(path, "gguf", opt)
	case ".bin":
		return loadWeightFile(path, "llama2.c", opt)
	case ".safetensors", ".pt", ".pth":
		return nil, &Error{What: fmt.Sprintf("%s: the weight file contains no hyper-parameters; give its folder (with config.json) or a model spec", path)}
	}
	src, err := regular.Read(path, maxConfig)
	if err != nil {
		return nil, err
	}
	return load(path, filepath.Dir(path), src, opt)
}

// fileForm matches the names of the files that Load reads or refuses. The name of a
// missing one has the form of a repository's name if it is in a folder.
var fileForm = regexp.MustCompile(`(?i)\.(ya?ml|json|gguf|bin|safetensors|pth?)$`)

func loadLibrary(name string, opt Options, statErr error) (*Spec, error) {
	if !errors.Is(statErr, fs.ErrNotExist) {
		return nil, statErr
	}
	if repositoryForm.MatchString(name) && !fileForm.MatchString(name) {
		return loadRepository(name, opt)
	}
	src, err := models.Lookup(name)
	if err != nil || strings.ContainsAny(name, "/\\") {
		return nil, &Error{What: fmt.Sprintf("%s: no such file and no such model in the library%s", name, suggest(name, models.Names()))}
	}
	return load(name+".yaml", ".", src, opt)
}

// loadRepository derives a model spec from the folder of a hub repository that
// was pulled.
func loadRepository(name string, opt Options) (*Spec, error) {
	if opt.Pulled != nil {
		if dir, ok := opt.Pulled(name); ok {
			return loadDir(dir, opt)
		}
	}
	return nil, &Error{Pull: []string{name}, What: fmt.Sprintf("%s: no such file; fetch a repository of the Hugging Face hub with \"iflowc pull %s\"", name, name)}
}

// load parses a model spec text and completes it from its model's files.
func load(file, base string, src []byte, opt Options) (*Spec, error) {
	s, network, err := parse(file, src)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(s.ModelDir) {
		s.ModelDir = filepath.Join(base, s.ModelDir)
	}
	if opt.ModelDir != "" {
		s.ModelDir = opt.ModelDir
	} else {
		s.findPulled(opt.Pulled)
	}
	if err := s.readConfig(); err != nil {
		return nil, err
	}
	return s.complete(network, opt)
}

// loadDir derives a model spec from a model folder.
func loadDir(dir string, opt Options) (*Spec, error) {
	if opt.ModelDir != "" {
		dir = opt.ModelDir
	}
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
		s := &Spec{Version: Version, Name: baseName(dir), ModelDir: dir, ConfigFile: "config.json", File: filepath.Join(dir, "config.json")}
		if err := s.readConfig(); err != nil {
			return nil, err
		}
		return s.complete(nil, opt)
	}
	for _, form := range []struct{ glob, format string }{{"*.gguf", "gguf"}, {"*.bin", "llama2.c"}} {
		found, err := filepath.Glob(filepath.Join(dir, form.glob))
		if err != nil {
			return nil, err
		}
		var files []string
		for _, f := range found {
			if filepath.Base(f) != "tokenizer.bin" {
				files = append(files, f)
			}
		}
		if len(files) == 1 || len(files) > 1 && checkpoint.SplitGGUF(files) {
			return loadWeightFile(files[0], form.format, opt)
		}
		if len(files) > 1 {
			return nil, &Error{What: fmt.Sprintf("%s: %d files match %s (%s, %s, …); name the one to use", dir, len(files), form.glob, filepath.Base(files[0]), filepath.Base(files[1]))}
		}
	}
	return nil, &Error{What: fmt.Sprintf("%s: not a model folder: no config.json, .gguf or llama2.c .bin file", dir)}
}

// loadWeightFile derives a model spec from a weight file that contains its hyper-parameters.
func loadWeightFile(path, format string, opt Options) (*Spec, error) {
	s := &Spec{Version: Version, Name: baseName(path), ModelDir: filepath.Dir(path), ModelFiles: []string{filepath.Base(path)}, ModelFileFormat: format, File: path}
	if format == "llama2.c" {
		if _, err := os.Stat(filepath.Join(s.ModelDir, "tokenizer.bin")); err == nil {
			s.TokenizerFile = "tokenizer.bin"
		}
	}
	if err := s.readConfig(); err != nil {
		return nil, err
	}
	return s.complete(nil, opt)
}

func baseName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	b := filepath.Base(path)
	if name, ok := regular.Repository(path); ok {
		b = name
	}
	for _, ext := range []string{".gguf", ".bin"} {
		b = strings.TrimSuffix(b, ext)
	}
	return b
}

// Parse parses the text of a model spec and completes it with the given
// config.json. It reads no file. A nil config is empty.
func Parse(file string, src []byte, config map[string]any, opt Options) (*Spec, error) {
	s, network, err := parse(file, src)
	if err != nil {
		return nil, err
	}
	if s.Config = maps.Clone(config); s.Config == nil {
		s.Config = map[string]any{}
	}
	return s.complete(network, opt)
}

// parse decodes all keys but network_structure, which it returns. Its values may
// refer to a config.json that is known only after the other keys are decoded.
func parse(file string, src []byte) (*Spec, *yaml.Node, error) {
	s := &Spec{File: file, set: positions{}}
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(src)))
	if err := dec.Decode(&doc); err != nil {
		if err == io.EOF {
			return nil, nil, errAt(Pos{File: file}, "empty; want a model spec")
		}
		return nil, nil, yamlError(file, err)
	}
	root := deref(doc.Content[0])
	d := &decoder{file: file, set: s.set}
	if root.Kind != yaml.MappingNode {
		return nil, nil, errAt(d.pos(root), "have %s, want a mapping of keys", nodeKind(root))
	}
	var network *yaml.Node
	rest := *root
	rest.Content = nil
	keys, err := s.takeBudget(d, root.Content)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i+1 < len(keys); i += 2 {
		if keys[i].Value == "network_structure" && network == nil {
			network = deref(keys[i+1])
			continue
		}
		rest.Content = append(rest.Content, keys[i], keys[i+1])
	}
	if err := d.structure(&rest, reflect.ValueOf(s).Elem(), ""); err != nil {
		return nil, nil, err
	}
	if network != nil && network.Kind != yaml.MappingNode {
		return nil, nil, errAt(d.pos(network), "network_structure: have %s, want a mapping of keys", nodeKind(network))
	}
	if s.Set("iflow") && s.Version != Version {
		return nil, nil, errAt(s.Pos("iflow"), "iflow: have version %d, want %d; this iflowc reads no other", s.Version, Version)
	}
	if err := s.checkRepository(); err != nil {
		return nil, nil, err
	}
	s.Version = Version
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	return s, network, nil
}

// readConfig reads config.json, or else the weight file's metadata, into Config.
func (s *Spec) readConfig() error {
	if !s.Set("config_file") && s.ModelFileFormat != "gguf" && s.ModelFileFormat != "llama2.c" {
		if _, err := os.Stat(filepath.Join(s.ModelDir, "config.json")); err == nil {
			s.ConfigFile = "config.json"
		}
	}
	if s.ConfigFile != "" {
		c, err := readConfig(filepath.Join(s.ModelDir, s.ConfigFile))
		if errors.Is(err, fs.ErrNotExist) {
			return s.noFiles("config_file", fmt.Sprintf("no %s", filepath.Join(s.ModelDir, s.ConfigFile)))
		}
		if s.Config = c; err == nil {
			s.readSentence()
		}
		return err
	}
	s.Config = map[string]any{}
	switch s.ModelFileFormat {
	case "gguf", "llama2.c", "":
	default:
		return nil
	}
	set, err := s.OpenWeights()
	if err != nil {
		return err
	}
	defer set.Close()
	switch set.Format() {
	case "gguf":
		s.Config = ggufConfig(set.Meta())
	case "llama2.c":
		s.Config = llama2cConfig(set.Meta())
	}
	s.ModelFileFormat = set.Format()
	return nil
}

// complete applies options, families and the model spec's own modules.
func (s *Spec) complete(network *yaml.Node, opt Options) (*Spec, error) {
	if err := s.applyEngine(); err != nil {
		return nil, err
	}
	if err := s.applyOptions(opt); err != nil {
		return nil, err
	}
	if err := checkKVType(s.KVType); err != nil {
		return nil, errAt(s.Pos("kv_type"), "kv_type: %v", err)
	}
	if err := errors.Join(s.checkMedusa(), s.checkDraft()); err != nil {
		return nil, err
	}
	if _, auto := AutoDevices(s.Devices); s.Devices != "" && !auto {
		if _, err := ParseDevices(s.Devices); err != nil {
			if opt.Devices != "" {
				return nil, &Error{What: fmt.Sprintf("--devices: %v", err)}
			}
			return nil, errAt(s.Pos("devices"), "devices: %v", err)
		}
	}
	return s, s.derive(network)
}

// derive builds the network from the configuration, the family and the model spec's own
// modules.
func (s *Spec) derive(network *yaml.Node) error {
	s.network, s.configFile = network, maps.Clone(s.Config)
	maps.Copy(s.Config, s.Hyper)
	if err := s.buildNetwork(network); err != nil {
		return err
	}
	if err := s.checkPatterns(); err != nil {
		return err
	}
	if s.Graph == "" {
		if err := s.checkParams(); err != nil {
			return err
		}
	}
	return s.vocabulary()
}

func (s *Spec) applyOptions(opt Options) error {
	s.Options = opt
	for _, o := range []struct {
		flag, val string
		set       func(string) error
	}{
		{"--quant", opt.Quant, s.setQuant},
		{"--kv", opt.KV, func(v string) (err error) {
			if s.KVType, err = ParseKVType(v); err == nil {
				err = checkKVType(s.KVType)
			}
			return
		}},
	} {
		if o.val == "" {
			continue
		}
		if err := o.set(o.val); err != nil {
			return &Error{What: o.flag + ": " + err.Error()}
		}
	}
	if opt.Devices != "" {
		s.Devices = opt.Devices
	}
	if opt.MaxContext > 0 {
		s.MaxContextLen = opt.MaxContext
	}
	return nil
}

// buildNetwork decodes network_structure in layers: the defaults, then the
// family, then the model spec's own keys. If the model spec states its type, the
// common values of config.json and the preset of the type replace the family.
func (s *Spec) buildNetwork(node *yaml.Node) error {
	d := &decoder{file: s.File, config: s.Config, set: s.set, steps: new(int)}
	typ := ""
	if node != nil {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == "type" {
				typ = canonicalWord(deref(node.Content[i+1]).Value)
			}
		}
	}
	fam, err := s.family(typ)
	if err != nil {
		return err
	}
	s.Network = newNetwork(fam.modules())
	if s.Graph == "" {
		s.Graph = fam.Graph
	}
	tensors, err := fam.apply(s.Config, &s.Network)
	if err != nil {
		return errAt(Pos{File: s.File}, "%v", err)
	}
	s.Ignore, s.unread = append(s.Ignore, tensors.ignore...), tensors.unread
	maps.Copy(s.Network.Params, networkTypes()[typ].Params)
	if node == nil {
		return nil
	}
	if err := d.network(node, &s.Network); err != nil {
		return err
	}
	s.correct()
	return nil
}

// family returns the defaults: the family that `family` names, that of
// config.json's architecture, or the generic one if the model spec states its type.
func (s *Spec) family(typ string) (*family, error) {
	if s.Family != "" {
		f, ok := findFamily(s.Family)
		if !ok {
			return nil, errAt(s.Pos("family"), "family: unknown %q%s", s.Family, suggest(s.Family, Architectures()))
		}
		return f, nil
	}
	if typ != "" {
		f, _ := findFamily("generic")
		return f, nil
	}
	arch, _ := s.Config["model_type"].(string)
	if f, ok := findFamily(arch); ok && arch != "" {
		return f, nil
	}
	if arch == "" {
		return nil, errAt(Pos{File: s.File}, "network_structure.type: missing, and config.json states no model_type to derive it from; want type, or family: one of %s", strings.Join(Architectures(), ", "))
	}
	return nil, s.unknownArchitecture(arch)
}
