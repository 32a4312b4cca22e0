package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

var model = map[string]string{
	"config.json":               `{"model_type":"llama"}`,
	"tokenizer.json":            "{}",
	"model.safetensors":         strings.Repeat("weights ", 10000),
	"pytorch_model.bin":         "pickle",
	"1_Pooling/config.json":     "{}",
	"onnx/model.onnx":           "other",
	"README.md":                 "text",
	"tokenizer_config.json":     "{} ",
	"original/consolidated.pth": "other",
}

func fetch(c *Client) (string, error) {
	ref, err := ParseRef("org/model")
	if err != nil {
		return "", err
	}
	l, err := c.List(context.Background(), ref)
	if err != nil {
		return "", err
	}
	files, _, err := l.Choose(Choice{})
	if err != nil {
		return "", err
	}
	return c.Pull(context.Background(), l, files)
}

func TestPull(t *testing.T) {
	t.Parallel()
	hub := newFakeHub(t, model)
	hub.token = "secret"
	c := hub.client(t)
	var last, total int64
	var mu sync.Mutex
	c.Progress = func(done, all int64) {
		mu.Lock()
		defer mu.Unlock()
		last, total = max(last, done), all
	}
	dir, err := fetch(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(c.Cache, "models--org--model", "snapshots", testCommit); dir != want {
		t.Errorf("folder %s, want %s", dir, want)
	}
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json", "tokenizer_config.json"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != model[name] {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	for _, name := range []string{"pytorch_model.bin", "onnx/model.onnx", "README.md", "original/consolidated.pth"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was fetched", name)
		}
	}
	if last != total || total == 0 {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	if hub.leaked {
		t.Error("the token was sent to another host")
	}
	ref, _ := ParseRef("org/model")
	if found, ok := c.Cached(ref); !ok || found != dir {
		t.Errorf("cached: %s, %v", found, ok)
	}
	if target, err := os.Readlink(filepath.Join(dir, "1_Pooling/config.json")); err != nil || !strings.HasPrefix(target, "../../../blobs/") {
		t.Errorf("link %s, %v", target, err)
	}
}

// TestFaults: what a network does to a transfer ends in the right bytes or in
// an error that says what to do, and never in a wrong file.
func TestFaults(t *testing.T) {
	t.Parallel()
	const big = "model.safetensors"
	for _, c := range []struct {
		name, file string
		faults     []fault
		err        string
		resumed    bool
	}{
		{"cut and resumed", big, []fault{{cut: 30000}, {cut: 7}}, "", true},
		{"cut, and the range ignored", big, []fault{{cut: 500}, {whole: true}}, "", false},
		{"wrong bytes once", big, []fault{{wrong: true}}, "", false},
		{"wrong bytes in a small file", "config.json", []fault{{wrong: true}}, "", false},
		{"wrong bytes always", big, slices.Repeat([]fault{{wrong: true}}, 9), "differs from the listing", false},
		{"cut always", big, slices.Repeat([]fault{{cut: 5000}}, 9), "was interrupted", true},
		{"too long", big, slices.Repeat([]fault{{long: true}}, 9), "differs from the listing", false},
		{"stalled and resumed", big, []fault{{stall: 30000}}, "", true},
		{"stalled always", big, slices.Repeat([]fault{{stall: 100}}, 9), "no data came for 200ms, after 200 of 80000 bytes", true},
		{"redirected in a circle", "config.json", slices.Repeat([]fault{{to: "SELF"}}, 9), "they go in a circle", false},
		{"redirected to a file", "config.json", []fault{{to: "file:///etc/passwd"}}, `to the scheme "file"`, false},
		{"server trouble", big, []fault{{status: 503}, {status: 500}, {status: 429}}, "", false},
		{"server down", big, slices.Repeat([]fault{{status: 502}}, 99), "status 502", false},
		{"forbidden", big, []fault{{status: 403}}, "accept the model's conditions", false},
		{"gone", "config.json", []fault{{status: 404}}, "no such model", false},
		{"listing: too many", "listing", []fault{{status: 429}, {status: 429}}, "", false},
		{"listing: too many always", "listing", slices.Repeat([]fault{{status: 429}}, 99), "too many requests (the server says: slow down)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hub := newFakeHub(t, model)
			hub.faults[c.file] = c.faults
			client := hub.client(t)
			dir, err := fetch(client)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %s", err, c.err)
				}
				found, _ := filepath.Glob(filepath.Join(client.Cache, "models--org--model", "snapshots", "*", "*"))
				if len(found) > 0 {
					t.Errorf("a failed pull left %v", found)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, big)); err != nil || string(data) != model[big] {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			if c.resumed != (len(hub.ranges) > 0) {
				t.Errorf("ranges %v", hub.ranges)
			}
		})
	}
}

// TestResumeLater: a pull that was interrupted goes on in another process.
func TestResumeLater(t *testing.T) {
	t.Parallel()
	hub := newFakeHub(t, model)
	hub.faults["model.safetensors"] = []fault{{cut: 40000}, {status: 403}}
	c := hub.client(t)
	if _, err := fetch(c); err == nil {
		t.Fatal("no error")
	}
	again := hub.client(t)
	again.Cache = c.Cache
	if _, err := fetch(again); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(hub.ranges, "bytes=40000-") {
		t.Errorf("ranges %v", hub.ranges)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	hub := newFakeHub(t, model)
	hub.token = "secret"
	c := hub.client(t)
	c.Token = ""
	if _, err := fetch(c); err == nil || !strings.Contains(err.Error(), "set HF_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	c.Token = "wrong"
	if _, err := fetch(c); err == nil || !strings.Contains(err.Error(), "not valid") {
		t.Errorf("with a wrong token: %v", err)
	}
}

// TestTwoAtOnce: two pulls of one model into one cache fetch every file once.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	hub := newFakeHub(t, model)
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			c := hub.client(t)
			c.Cache = cache
			if _, err := fetch(c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left, _ := filepath.Glob(filepath.Join(cache, "models--org--model", "blobs", "*.incomplete")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	hub := newFakeHub(t, model)
	c := hub.client(t)
	ref, _ := ParseRef("org/model")
	l, err := c.List(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Pull(ctx, l, l.Files); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzListing parses any response of a hub. What it accepts is written below the cache
// only.
func FuzzListing(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(`{"sha":%[1]q,"siblings":[{"rfilename":"a/b.json","size":1,"blobId":%[1]q},{"rfilename":"c","lfs":{"sha256":%[2]q,"size":3}}]}`, testCommit, strings.Repeat("0", 64))))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = hostiletest.Read(t, len(data), func() error {
			l, err := parseListing(Ref{"a/b", "main"}, data)
			if err != nil {
				return err
			}
			for _, file := range l.Files {
				if !filepath.IsLocal(file.Name) || file.Size < 0 {
					t.Fatalf("%+v", file)
				}
			}
			return nil
		})
	})
}

func TestHostileListings(t *testing.T) {
	t.Parallel()
	entry := func(name string) string {
		return fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":%q,"size":1,"blobId":%q}]}`, testCommit, name, testCommit)
	}
	for _, text := range []string{
		entry("../evil"), entry("/etc/passwd"), entry("a/../../b"), entry("a\\b"), entry(""), entry("a\x00b"), entry("C:x"), entry("a//b"), entry("a\x1b[31m"), entry("a\u202eb"),
		fmt.Sprintf(`{"sha":%[1]q,"siblings":[{"rfilename":"a","size":1,"blobId":%[1]q},{"rfilename":"a/b/c","size":1,"blobId":%[1]q}]}`, testCommit),
		`{"sha":"../../x","siblings":[]}`, `[]`, `{`, `{"sha":"` + testCommit + `","siblings":[{"rfilename":"a","size":-1,"blobId":"` + testCommit + `"}]}`,
		`{"sha":"` + testCommit + `","siblings":[{"rfilename":"a","size":1}]}`,
		`{"sha":"` + testCommit + `","siblings":[{"rfilename":"a","size":1,"lfs":{"sha256":"../../x","size":3}}]}`,
	} {
		if l, err := parseListing(Ref{"a/b", "main"}, []byte(text)); err == nil {
			t.Errorf("%s is accepted: %v", text, l)
		}
	}
	for _, text := range []string{"", "a/b/c", "../x", "a/..", "a@", "a@../x", "a b", "-a/b", "http://x/y"} {
		if r, err := ParseRef(text); err == nil {
			t.Errorf("%q is accepted: %v", text, r)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	list := func(names ...string) *Listing {
		l := &Listing{Ref: Ref{"a/b", "main"}}
		for _, n := range names {
			l.Files = append(l.Files, File{Name: n})
		}
		return l
	}
	for _, c := range []struct {
		name   string
		list   *Listing
		choice Choice
		want   string
		err    string
	}{
		{"safetensors", list("model.safetensors", "pytorch_model.bin", "config.json"), Choice{}, "config.json model.safetensors", ""},
		{"pickle too", list("model.safetensors", "pytorch_model.bin"), Choice{Pickle: true}, "model.safetensors pytorch_model.bin", ""},
		{"pickle alone", list("pytorch_model.bin", "config.json", "optimizer.pt"), Choice{}, "config.json pytorch_model.bin", ""},
		{"one GGUF", list("m.gguf", "README.md"), Choice{}, "m.gguf", ""},
		{"many GGUF", list("m-q4_0.gguf", "m-q8_0.gguf"), Choice{}, "", "--gguf: m-q4_0.gguf, m-q8_0.gguf"},
		{"named GGUF", list("m-Q4_0.gguf", "m-Q8_0.gguf", "config.json"), Choice{GGUF: "q8_0"}, "config.json m-Q8_0.gguf", ""},
		{"parts", list("m-q8-00001-of-00002.gguf", "m-q8-00002-of-00002.gguf"), Choice{}, "m-q8-00001-of-00002.gguf m-q8-00002-of-00002.gguf", ""},
		{"included", list("model.safetensors", "onnx/model.onnx"), Choice{Include: []string{"onnx/*"}}, "onnx/model.onnx model.safetensors", ""},
		{"nothing", list("README.md"), Choice{}, "", "neither weights"},
		{"bad pattern", list("README.md"), Choice{Include: []string{"["}}, "", "pattern"},
	} {
		files, _, err := c.list.Choose(c.choice)
		var names []string
		for _, f := range files {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}
