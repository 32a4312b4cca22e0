//go:build unix

package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A choosing device chooses the tokens that it may and destroys their rows, as if they had
// stayed on another machine. It records the rows.
type choosing struct {
	device.Device
	device.Context
	rows []string
}

func (d *choosing) Start(cfg *device.Config) (device.Context, error) {
	var err error
	d.Context, err = d.Device.Start(cfg)
	return d, err
}

func (d *choosing) Submit(s *device.Step) func() error {
	err := d.Context.Submit(s)()
	for row := range s.OutRows {
		if s.Chosen[row] != device.Choose {
			d.rows = append(d.rows, "read")
			continue
		}
		d.rows = append(d.rows, fmt.Sprint(s.Choices[row].Random))
		logits := s.Out[0][row*devicetest.Cols:][:devicetest.Cols]
		var p decode.Picker
		s.Chosen[row], _ = p.Pick(logits[:devicetest.Vocab], s.Choices[row])
		for i := range logits {
			logits[i] = float32(math.NaN())
		}
	}
	return device.Ended(err)
}

// take returns the rows that a step recorded.
func (d *choosing) take() string {
	defer func() { d.rows = nil }()
	return strings.Join(d.rows, " ")
}

// TestChoices checks which rows' tokens a device may choose, and with which random numbers:
// those after the last token and after drafted nodes, as deep as these are.
func TestChoices(t *testing.T) {
	t.Parallel()
	m := fake(t)
	d := &choosing{Device: m.Device}
	m.Device = d
	e := open(t, m, engine.Options{MaxTokens: 16, MaxSeqs: 2, Draft: 5})
	choice := func(ahead int) (decode.Choice, bool) {
		return decode.Choice{Random: float64(ahead) / 10, Options: decode.Options{Temperature: 1}}, ahead < 3
	}
	p := prompt(rand.New(rand.NewPCG(5, 2)), 40)
	id, err := e.AddQuery(engine.Query{Tokens: p, Last: 2, Choice: choice})
	must := func(err error) {
		if t.Helper(); err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	step := func(want string) engine.Result {
		t.Helper()
		results, err := e.Infer(t.Context())
		must(err)
		if got := d.take(); got != want {
			t.Fatalf("rows %q, expected %q", got, want)
		}
		return results[0]
	}
	step("") // 16 of 40 tokens
	step("")
	r := step("read 0")
	if logits := devicetest.Logits(p[:39], salt); !slices.Equal(r.Row(0, 0), logits) {
		t.Error("other logits of a row that is read")
	}
	var pick decode.Picker
	x, _ := choice(0)
	want, _ := pick.Pick(devicetest.Logits(p, salt)[:devicetest.Vocab], x)
	if row := r.RowOf(0, -1, devicetest.Vocab, nil); !row.Chosen || row.Token != want {
		t.Errorf("%+v, expected token %d", row, want)
	}
	func() {
		defer func() {
			if why := fmt.Sprint(recover()); !strings.Contains(why, "bug: row 1 of logits is read") {
				t.Errorf("a row whose token was chosen was read: %s", why)
			}
		}()
		r.Row(0, 1)
	}()
	must(e.Commit(id, 9))
	must(e.Propose(id, speculate.Tree{Tokens: []int32{10, 11, 12, 13}, Parent: []int32{-1, -1, 1, 2}}))
	step("0 0.1 0.1 0.2 read")
	must(e.Commit(id, 9))
	fork, err := e.Fork(id)
	must(err)
	e.Remove(id)
	step("read")
	must(e.Commit(fork, 9))
	e.SetChoice(fork, choice)
	step("0")
}
