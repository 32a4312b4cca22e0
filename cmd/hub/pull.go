package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Pull fetches the files of a listing that are missing from the cache, and
// returns the folder with all of them.
func (c *Client) Pull(ctx context.Context, l *Listing, files []File) (dir string, err error) {
	c.start()
	p := &pull{Client: c, list: l}
	var missing []File
	for _, f := range files {
		p.total += f.Size
		if c.have(l.Ref, f) {
			p.done += f.Size
		} else {
			missing = append(missing, f)
		}
	}
	blobs := filepath.Join(c.Cache, l.Ref.folder(), "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return "", err
	}
	if err := c.room(p.total - p.done); err != nil {
		return "", err
	}
	if err := p.fetchAll(ctx, missing); err != nil {
		return "", err
	}
	for _, f := range files {
		if err := c.link(l, f); err != nil {
			return "", err
		}
	}
	if err := c.remember(l); err != nil {
		return "", err
	}
	return c.snapshot(l.Ref, l.Commit), nil
}

// A pull is one call of Pull.
type pull struct {
	*Client
	list  *Listing
	total int64
	mu    sync.Mutex
	done  int64
}

// fetchAll fetches several files concurrently; the first error stops all.
func (p *pull) fetchAll(ctx context.Context, files []File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan File)
	var wg sync.WaitGroup
	for range p.Jobs {
		wg.Go(func() {
			for f := range work {
				if err := p.fetch(ctx, f); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, f := range files {
		select {
		case work <- f:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// errHash means that the content does not match the announced hash.
var errHash = errors.New("the content differs from the listing")

// fetch fetches one file into the cache. Content with a wrong hash is deleted
// and fetched once more from the beginning.
func (p *pull) fetch(ctx context.Context, f File) error {
	unlock, err := p.lock(ctx, p.list.Ref, f)
	if err != nil {
		return err
	}
	defer unlock()
	if p.have(p.list.Ref, f) { // another process has fetched it meanwhile
		p.add(f.Size)
		return nil
	}
	for try, best := 1, int64(0); ; try++ {
		t := transfer{pull: p, file: f}
		err := t.run(ctx)
		if err == nil {
			return nil
		}
		p.add(-t.counted)
		if t.have >= best+1<<20 { // it makes progress: any number of interruptions may follow
			try, best = 1, t.have
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errHash) && try == 1:
			p.notice("%s: %v; fetching it again", f.Name, err)
		case errors.Is(err, errStalled) && try < 2, errors.Is(err, errCut) && try < tries:
			p.notice("%s: %v; going on", f.Name, err)
		default:
			return fmt.Errorf("%s: %s: %w", p.list.Ref, f.Name, err)
		}
	}
}

// errCut means that a transfer ended early.
var errCut = errors.New("the transfer was interrupted")

// A transfer is one attempt to fetch a file.
type transfer struct {
	*pull
	file    File
	part    *os.File
	sum     hash.Hash // of the bytes in part
	have    int64     // number of bytes in part
	counted int64     // bytes reported as progress
}

// run fetches the missing bytes of the file, checks the whole, and renames it.
func (t *transfer) run(ctx context.Context) (err error) {
	f := t.file
	blob := t.blob(t.list.Ref, f)
	if t.part, err = os.OpenFile(blob+".incomplete", os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	defer t.part.Close()
	if err := t.resume(); err != nil {
		return err
	}
	if t.have < f.Size {
		if err := t.body(ctx); err != nil {
			return err
		}
	}
	if got := hex.EncodeToString(t.sum.Sum(nil)); got != f.hash() {
		if err := os.Remove(t.part.Name()); err != nil {
			return err
		}
		return fmt.Errorf("%w: hash %.12s…, expected %.12s…", errHash, got, f.hash())
	}
	if err := t.part.Sync(); err != nil {
		return err
	}
	return os.Rename(t.part.Name(), blob)
}

// resume reads the bytes that an earlier attempt left.
func (t *transfer) resume() error {
	t.sum = t.file.newHash()
	info, err := t.part.Stat()
	if err != nil {
		return err
	}
	if info.Size() > t.file.Size { // not a part of this file
		return t.part.Truncate(0)
	}
	t.have, err = io.Copy(t.sum, t.part)
	t.count(t.have)
	return err
}

// body writes the missing bytes.
func (t *transfer) body(ctx context.Context) error {
	f := t.file
	address := t.Endpoint + "/" + t.list.Ref.Repo + "/resolve/" + t.list.Commit + "/" + escape(f.Name)
	answer, err := t.get(ctx, address, t.have)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if t.have > 0 && !continues(answer, t.have) { // the response has the whole file again
		t.count(-t.have)
		t.have, t.sum = 0, f.newHash()
		if err := t.part.Truncate(0); err != nil {
			return err
		}
	}
	if _, err := t.part.Seek(t.have, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(t.part, t.sum, counter{t}), io.LimitReader(answer.Body, f.Size-t.have+1))
	t.have += n
	switch {
	case errors.Is(err, errStalled):
		return fmt.Errorf("%w, after %d of %d bytes", err, t.have, f.Size)
	case t.have > f.Size:
		return fmt.Errorf("%w: more than %d bytes", errHash, f.Size)
	case t.have < f.Size:
		return fmt.Errorf("%w after %d of %d bytes", errCut, t.have, f.Size)
	}
	return err
}

// continues reports whether a response starts at byte from.
func continues(answer *http.Response, from int64) bool {
	if answer.StatusCode != http.StatusPartialContent {
		return false
	}
	text, ok := strings.CutPrefix(answer.Header.Get("Content-Range"), "bytes ")
	first, _, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return ok && err == nil && n == from
}

// newHash returns the hash of a file: SHA-256, or that of a Git blob.
func (f File) newHash() hash.Hash {
	if f.SHA256 != "" {
		return sha256.New()
	}
	h := sha1.New() // names Git blobs; it only detects transfer errors
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return h
}

// escape converts a file's name to a part of an address.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// A counter counts bytes as they are written.
type counter struct{ t *transfer }

func (c counter) Write(b []byte) (int, error) {
	c.t.count(int64(len(b)))
	return len(b), nil
}

func (t *transfer) count(n int64) {
	t.counted += n
	t.add(n)
}

func (p *pull) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.Progress != nil {
		p.Progress(p.done, p.total)
	}
}
