package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// A File is one file of a model.
type File struct {
	Name   string // with slashes, below the model's folder
	Size   int64
	SHA256 string // of large files
	Git    string // Git blob hash of the others
}

// hash returns the name of the file in the cache.
func (f File) hash() string {
	if f.SHA256 != "" {
		return f.SHA256
	}
	return f.Git
}

// A Listing is the list of a model's files at one commit.
type Listing struct {
	Ref    Ref
	Commit string
	Files  []File
}

const (
	maxListing = 64 << 20
	maxFile    = 1 << 42
)

var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// List fetches the list of a model's files.
func (c *Client) List(ctx context.Context, ref Ref) (*Listing, error) {
	c.start()
	answer, err := c.get(ctx, c.Endpoint+"/api/models/"+ref.Repo+"/revision/"+url.PathEscape(ref.Revision)+"?blobs=true", 0)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxListing))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return parseListing(ref, data)
}

func parseListing(ref Ref, data []byte) (*Listing, error) {
	var said struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
			Blob string `json:"blobId"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
				Size   int64  `json:"size"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, fmt.Errorf("%s: the response is not a list of a model's files: %w", ref, err)
	}
	if !commitForm.MatchString(said.SHA) {
		return nil, fmt.Errorf("%s: the response names no commit", ref)
	}
	l := &Listing{Ref: ref, Commit: said.SHA}
	for _, s := range said.Siblings {
		f := File{Name: s.Name, Git: s.Blob}
		if s.Size != nil {
			f.Size = *s.Size
		}
		if s.LFS != nil {
			f.Size, f.SHA256 = s.LFS.Size, s.LFS.SHA256
		}
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		l.Files = append(l.Files, f)
	}
	slices.SortFunc(l.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	names := map[string]bool{}
	for _, f := range l.Files {
		names[f.Name] = true
	}
	for _, f := range l.Files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if names[dir] {
				return nil, fmt.Errorf("%s: the listing has %.80q as a file and as a folder", ref, dir)
			}
		}
	}
	return l, nil
}

// check rejects listings that cannot be genuine.
func (f File) check() error {
	if f.Name == "" || len(f.Name) > 1024 || path.Clean(f.Name) != f.Name || path.IsAbs(f.Name) || strings.HasPrefix(f.Name, "..") ||
		strings.ContainsAny(f.Name, "\\\x00\n\r:") {
		return fmt.Errorf("the listing has a file %.80q outside the model's folder", f.Name)
	}
	if printable.Text(f.Name) != f.Name || strings.Contains(f.Name, "\t") {
		return fmt.Errorf("the listing has a file %.80q, whose name has characters that a terminal obeys", f.Name)
	}
	if f.Size < 0 || f.Size > maxFile {
		return fmt.Errorf("the listing says that %.80q has %d bytes", f.Name, f.Size)
	}
	if f.SHA256 != "" && !sha256Form.MatchString(f.SHA256) || f.SHA256 == "" && !commitForm.MatchString(f.Git) {
		return fmt.Errorf("the listing has no hash for %.80q, so its content cannot be checked", f.Name)
	}
	return nil
}
