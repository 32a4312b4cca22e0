package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// A fakeHub speaks the part of the hub's protocol that is used here, with
// faults on demand. Large files are redirected to another host, as there.
type fakeHub struct {
	t     *testing.T
	files map[string]string // content by name
	token string            // needed where not empty

	mu      sync.Mutex
	faults  map[string][]fault // of the next answers for a file
	ranges  []string           // Range headers that came
	leaked  bool               // the token came to the other host
	storage *httptest.Server
	hub     *httptest.Server
}

// A fault spoils one answer.
type fault struct {
	status int
	cut    int  // bytes after which the connection ends; 0: none
	wrong  bool // other bytes of the same length
	whole  bool // the range is ignored
	long   bool // more bytes than announced
	stall  int  // bytes after which nothing comes any more; 0: none
	to     string
}

func newFakeHub(t *testing.T, files map[string]string) *fakeHub {
	f := &fakeHub{t: t, files: files, faults: map[string][]fault{}}
	f.storage = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			f.leaked = true
		}
		f.send(w, r, strings.TrimPrefix(r.URL.Path, "/blob/"))
	}))
	f.hub = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.storage.Close)
	t.Cleanup(f.hub.Close)
	return f
}

func isLarge(name string) bool { return strings.HasSuffix(name, ".safetensors") }

func (f *fakeHub) serve(w http.ResponseWriter, r *http.Request) {
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		http.Error(w, `{"error":"Invalid username or password."}`, http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/models/") {
		f.listing(w, r)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/org/model/resolve/"+testCommit+"/")
	if _, known := f.files[name]; !ok || !known {
		http.NotFound(w, r)
		return
	}
	if isLarge(name) {
		http.Redirect(w, r, f.storage.URL+"/blob/"+name, http.StatusFound) // another port of the same host
		return
	}
	f.send(w, r, name)
}

func (f *fakeHub) listing(w http.ResponseWriter, r *http.Request) {
	if spoilt := f.next("listing"); spoilt.status != 0 {
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error":"slow down"}`, spoilt.status)
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/api/models/org/model/revision/") {
		http.NotFound(w, r)
		return
	}
	type lfs struct {
		SHA256 string `json:"sha256"`
		Size   int    `json:"size"`
	}
	type sibling struct {
		Name string `json:"rfilename"`
		Size int    `json:"size"`
		Blob string `json:"blobId"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	var list []sibling
	for name, text := range f.files {
		git := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text)))
		s := sibling{Name: name, Size: len(text), Blob: hex.EncodeToString(git[:])}
		if isLarge(name) {
			sum := sha256.Sum256([]byte(text))
			s.LFS = &lfs{hex.EncodeToString(sum[:]), len(text)}
		}
		list = append(list, s)
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"sha": testCommit, "siblings": list}); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeHub) next(name string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.faults[name]
	if len(list) == 0 {
		return fault{}
	}
	f.faults[name] = list[1:]
	return list[0]
}

func (f *fakeHub) send(w http.ResponseWriter, r *http.Request, name string) {
	text, spoilt := f.files[name], f.next(name)
	if spoilt.to != "" {
		w.Header().Set("Location", strings.Replace(spoilt.to, "SELF", r.URL.Path, 1))
		w.WriteHeader(http.StatusFound)
		return
	}
	if spoilt.status != 0 {
		w.WriteHeader(spoilt.status)
		return
	}
	if spoilt.wrong {
		text = strings.Repeat("?", len(text))
	}
	if spoilt.long {
		text += "more"
	}
	from := 0
	if h := r.Header.Get("Range"); h != "" && !spoilt.whole {
		f.mu.Lock()
		f.ranges = append(f.ranges, h)
		f.mu.Unlock()
		from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(h, "bytes="), "-"))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	if spoilt.stall > 0 {
		_, _ = w.Write([]byte(text[from : from+spoilt.stall]))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	if spoilt.cut > 0 {
		_, _ = w.Write([]byte(text[from : from+spoilt.cut]))
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte(text[from:]))
}

func (f *fakeHub) client(t *testing.T) *Client {
	return &Client{Endpoint: f.hub.URL, Cache: t.TempDir(), Agent: "test", retry: time.Millisecond, stall: 200 * time.Millisecond, Token: f.token}
}
