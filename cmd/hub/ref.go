package hub

import (
	"fmt"
	"regexp"
	"strings"
)

// A Ref names a model: owner/name, and a branch, tag or commit.
type Ref struct {
	Repo     string // "owner/name", or "name" for the oldest models
	Revision string // "main" unless given
}

var (
	repoForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9._-]{1,96})?$`)
	revisionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$`)
)

// ParseRef reads OWNER/NAME or OWNER/NAME@REVISION.
func ParseRef(text string) (Ref, error) {
	repo, revision, given := strings.Cut(text, "@")
	if !given {
		revision = "main"
	}
	if !repoForm.MatchString(repo) || strings.Contains(repo, "..") || strings.Contains(repo, "--") {
		return Ref{}, fmt.Errorf("%q is not a model; expected OWNER/NAME, such as HuggingFaceTB/SmolLM2-135M-Instruct", text)
	}
	if !revisionForm.MatchString(revision) || strings.Contains(revision, "..") {
		return Ref{}, fmt.Errorf("%q: %q is not a branch, tag or commit", text, revision)
	}
	return Ref{repo, revision}, nil
}

// folder returns the model's folder in the cache.
func (r Ref) folder() string { return "models--" + strings.ReplaceAll(r.Repo, "/", "--") }

func (r Ref) String() string { return r.Repo + "@" + r.Revision }
