package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repositoryForm matches the repository names of the Hugging Face hub.
var repositoryForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9._-]{1,96}$`)

// checkRepository returns an error for an invalid repository name or number of
// parameters.
func (s *Spec) checkRepository() error {
	if s.Repository != "" && !repositoryForm.MatchString(s.Repository) {
		return errAt(s.Pos("repository"), "repository: have %q, want OWNER/NAME, such as meta-llama/Llama-3.1-8B-Instruct", s.Repository)
	}
	if s.Parameters < 0 {
		return errAt(s.Pos("parameters"), "parameters: have %d, want the number of the model's parameters", s.Parameters)
	}
	return nil
}

// findPulled sets the model's folder to the repository's folder in the hub cache,
// if that folder contains the model's files and the spec's own folder does not.
func (s *Spec) findPulled(pulled func(repository string) (dir string, ok bool)) {
	if s.Repository == "" || pulled == nil || s.HoldsFiles(s.ModelDir) {
		return
	}
	if dir, ok := pulled(s.Repository); ok && s.HoldsFiles(dir) {
		s.ModelDir, s.Pulled = dir, true
	}
}

// HoldsFiles reports whether a folder contains the model files and the config file
// that the spec names, or config.json if it names none.
func (s *Spec) HoldsFiles(dir string) bool {
	names := slices.Clone(s.ModelFiles)
	if s.ConfigFile != "" {
		names = append(names, s.ConfigFile)
	}
	if len(names) == 0 {
		names = []string{"config.json"}
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	})
}

// PullArgs returns the arguments of iflowc pull that fetch the files of the spec;
// nil if it names no repository.
func (s *Spec) PullArgs() []string {
	if s.Repository == "" {
		return nil
	}
	args := []string{s.Repository}
	if len(s.ModelFiles) == 1 && strings.HasSuffix(s.ModelFiles[0], ".gguf") { // one of several in the repository
		args = append(args, "--gguf", strings.TrimSuffix(s.ModelFiles[0], ".gguf"))
	}
	return args
}

// noFiles returns the error for missing files of the model.
func (s *Spec) noFiles(key, what string) error {
	pull := s.PullArgs()
	if pull == nil {
		return errAt(s.Pos(key), "%s: %s; give the model's folder with model_dir or --model-dir", key, what)
	}
	return &Error{Pull: pull, What: fmt.Sprintf("%s: %s; fetch the model with \"iflowc pull %s\", or give its folder with --model-dir",
		s.Name, what, strings.Join(pull, " "))}
}
