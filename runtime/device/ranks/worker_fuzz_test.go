//go:build unix

package ranks

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// A talker is a control channel to a rank that never stops talking.
type talker struct{}

func (talker) Do(f func())                                                 { f() }
func (talker) Send(int, comm.Tag, []byte) error                            { return nil }
func (talker) Recv(int, comm.Tag, []byte) error                            { return nil }
func (talker) Probe(int, comm.Tag) (int, error)                            { return 1, nil }
func (talker) Await(int, comm.Tag, time.Duration) (data []byte, err error) { return }
func (talker) Flush() error                                                { return nil }
func (talker) Fail(int)                                                    {}
func (talker) Lost() <-chan struct{}                                       { return nil }
func (talker) Leave()                                                      {}
func (talker) Abort(int)                                                   {}

// noEndpoint is an endpoint that reaches nobody.
type noEndpoint struct{}

func (noEndpoint) Table() unsafe.Pointer    { return nil }
func (noEndpoint) Counts() (c comm.Counts)  { return }
func (noEndpoint) Failed() int              { return -1 }
func (noEndpoint) SetTimeout(time.Duration) {}
func (noEndpoint) ShortenTimeout()          {}

// A sketch is a program without code.
type sketch struct{ m *manifest.Manifest }

func (p sketch) Manifest() *manifest.Manifest        { return p.m }
func (sketch) Hash() string                          { return "hash" }
func (sketch) Rank(int, *Settings) (*Rank, error)    { return nil, errors.New("no code") }
func (sketch) Shares() ([]*manifest.Manifest, error) { return nil, errors.New("no shares") }
func (sketch) Weights(int, *Settings) ([]byte, string, error) {
	return nil, "", errors.New("no weights")
}

// newWorker returns the last rank of two with an open model.
func newWorker(tb testing.TB) *worker {
	m := &manifest.Manifest{
		Vocab: 7, Partition: &manifest.Partition{Ranks: []manifest.Rank{{TPSize: 1}, {Stage: 1, TPSize: 1}}},
		Graphs: []manifest.Graph{{Name: "decode", Outputs: []manifest.Output{{Name: "logits", Rows: "out_rows", Cols: 8, Used: 7}}}, {Name: "embed", At: 1, Outputs: []manifest.Output{{Name: "rows", Rows: "tokens", Cols: 4, Used: 4}}}},
	}
	cfg := stepSizes(6)
	cfg.Outputs = []device.Array{{Rows: 4, Cols: 8}, {Rows: 12, Cols: 4}}
	own, err := device.NewStep(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(own.Free)
	j := &Job{program: sketch{m}, part: m.Partition, launch: comm.Launch{Rank: 1, Ranks: 2, At: -1}, control: talker{}, endpoint: noEndpoint{}}
	var ctx recorder
	return &worker{Job: j, me: &runner{rank: 1, ctx: &ctx, own: own, endpoint: noEndpoint{}, pages: 5, cells: 6}, pickers: make(pickers, 1), limit: time.Second}
}

// FuzzControl checks that no messages of a process that claims to be rank 0 make a worker
// panic, wait, or take memory that they do not fill.
func FuzzControl(f *testing.F) {
	s := newWorker(f).me.own
	message := func(w []int32) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(w))), bytesOf(w)...)
	}
	object := func(what int32, v any) []byte {
		w, err := appendJSON(words(what), v)
		if err != nil {
			f.Fatal(err)
		}
		return message(w)
	}
	s.Tokens, s.OutRows, s.Seqs = 3, 4, 1
	f.Add(message(appendStep(words(msgStep), s, false)))
	s.Graph = 1
	f.Add(message(appendStep(words(msgStep), s, false)))
	f.Add(object(msgOpen, opening{Hash: "hash", Pages: 1, MaxTokens: 1, MaxOutRows: 1, MaxSeqs: 1, Outputs: []device.Array{{Rows: 1 << 40, Cols: 1 << 40}}}))
	f.Add(object(msgOpen, opening{Hash: "other"}))
	f.Add(slices.Concat(object(msgAdapter, adapterHead{Number: 1, Floats: adapterFloats}), message(words(msgAdapterData, 1, 2, 3))))
	f.Add(slices.Concat(message(words(msgJoin, 1)), message(words(msgCopy, 1, 99)), message(words(msgClose)), message(words(msgStep))))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, sent := newWorker(t), len(data)
		for len(data) >= 8 {
			n := min(uint64(binary.LittleEndian.Uint32(data))*4, uint64(len(data)-4)) &^ 3
			words, err := wordsOf(data[4 : 4+n])
			if err != nil {
				return
			}
			data = data[4+n:]
			if leave, err := w.handle(int(words[0]), words[1:]); leave || err != nil {
				return
			}
			if w.coming != nil && w.coming.packed != nil && cap(w.coming.packed.Data) > sent {
				t.Errorf("%d bytes take %d numbers", sent, cap(w.coming.packed.Data))
			}
		}
	})
}

// FuzzReply checks that no reply of another rank is printed as it came.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"hash":"a","error":"no \u001b[31m"}`))
	f.Add([]byte("\x1b[2J"))
	f.Add([]byte(strings.Repeat("[", maxReply+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readReply(1, data)
		text := r.Error
		if err != nil {
			text = err.Error()
		}
		if text != printable.Text(text) || err != nil && len(text) > 1000 {
			t.Errorf("prints %q", text)
		}
	})
}

// TestFits checks that a step whose results have no room is an error before it runs.
func TestFits(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	s := w.me.own
	for _, c := range []struct {
		graph, tokens, rows int
		fits                bool
	}{{0, 3, 4, true}, {1, 12, 4, true}, {2, 3, 4, false}, {-1, 3, 4, false}, {0, 3, 5, false}, {1, 13, 4, false}} {
		s.Graph, s.Tokens, s.OutRows = c.graph, c.tokens, c.rows
		if err := fits(w.program.Manifest(), s); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestEndlessPongs checks that a rank that never stops talking does not keep rank 0 from its
// work.
func TestEndlessPongs(t *testing.T) {
	t.Parallel()
	p := &stepLoop{remoteModel: &remoteModel{Leader: &Leader{Job: newWorker(t).Job}}}
	if some, err := p.takePongs(1); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
}

// TestOpening checks that a configuration with impossible sizes is an error.
func TestOpening(t *testing.T) {
	t.Parallel()
	good := `{"Pages":1,"MaxTokens":1,"MaxOutRows":1,"MaxSeqs":1`
	for text, want := range map[string]bool{
		good + "}": true, good + `,"Outputs":[{"Rows":-1,"Cols":1}]}`: false, good + `,"Outputs":[{"Rows":4294967296,"Cols":4294967296}]}`: false,
		good + `,"MaskWords":-1}`: false, good + `,"MaxPages":1000000000000}`: false, good + `,"Outputs":[` + strings.Repeat(`{"Rows":1,"Cols":1},`, 99) + `{}]}`: false, "{}": false,
	} {
		var o opening
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if _, err := o.config(1); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
