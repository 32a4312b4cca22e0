//go:build unix

package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// Messages from rank 0 to the workers. A message is a list of 32-bit words; the first
// is one of these constants. Every rank reads its messages in order.
const (
	msgOpen        = iota + 1 // open a model: the words of an opening as JSON, padded with spaces
	msgStep                   // compute a step: its words (appendStep)
	msgCopy                   // copy a page: to, from
	msgMove                   // copy a row: page and row to, page and row from
	msgPing                   // reply with a sign of life
	msgClose                  // close the model; another may be opened
	msgLeave                  // acknowledge once no more messages will follow, then wait for msgGo
	msgGo                     // leave the job
	msgJoin                   // join the group of GPUs and acknowledge: the words of NCCL's id
	msgCopyCell               // copy a cell: to, from
	msgMoveInCells            // copy a row: cell and row to, cell and row from
	msgAdapter                // load or free an adapter: the words of an adapterHead as JSON
	msgAdapterData            // numbers of the adapter; with the last of them it is loaded and the rank replies
)

// An opening is the configuration with which rank 0 opened a model.
type opening struct {
	Settings Settings `json:"settings"`
	Hash     string   `json:"hash"`

	Pages, MaxTokens, MaxOutRows, MaxSeqs, MaskWords, MaxPages int
	Cells, MaxCells                                            int
	Outputs                                                    []device.Array
}

// A reply reports the result of opening a model on a rank; an empty error means
// success.
type reply struct {
	Error  string `json:"error,omitempty"`
	Hash   string `json:"hash"`
	Source string `json:"source"`
}

// maxReply is the maximum size of a reply in bytes.
const maxReply = 64 << 10

// readReply parses what another rank replied. Its error is printed here.
func readReply(rank int, data []byte) (r reply, err error) {
	if len(data) > maxReply || json.Unmarshal(data, &r) != nil {
		return r, &comm.RankError{Rank: rank, Err: fmt.Errorf("bug: invalid reply %q of %d bytes", data[:min(len(data), 100)], len(data))}
	}
	r.Error = printable.Text(r.Error)
	return r, nil
}

// words returns a message.
func words(what int32, rest ...int32) []int32 {
	return append(append(make([]int32, 0, 8), what), rest...)
}

// appendJSON appends a value as JSON, padded to whole words.
func appendJSON(w []int32, v any) ([]int32, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	for len(data)%4 != 0 {
		data = append(data, ' ')
	}
	at := len(w)
	w = append(w, make([]int32, len(data)/4)...)
	copy(bytesOf(w[at:]), data)
	return w, nil
}

// bytesOf returns the memory of words. All ranks of a job must have the same byte
// order.
func bytesOf[T int32 | float32](w []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
}

// wordsOf parses a message.
func wordsOf(data []byte) ([]int32, error) {
	if len(data) < 4 || len(data)%4 != 0 {
		return nil, fmt.Errorf("invalid message of %d bytes from rank 0", len(data))
	}
	w := make([]int32, len(data)/4)
	copy(bytesOf(w), data)
	return w, nil
}

// rowsOf returns the number of rows of an output in a step.
func rowsOf(o *manifest.Output, s *device.Step) int {
	switch o.Rows {
	case "tokens":
		return s.Tokens
	case "out_rows":
		return s.OutRows
	case "sequences":
		return s.Seqs
	}
	return 0
}

// fits returns an error if the program has no such graph, or the arrays have no room for its
// outputs.
func fits(m *manifest.Manifest, s *device.Step) error {
	if s.Graph < 0 || s.Graph >= len(m.Graphs) {
		return fmt.Errorf("bug: rank 0 sent a step of graph %d of %d", s.Graph, len(m.Graphs))
	}
	g := &m.Graphs[s.Graph]
	for i, o := range g.Outputs {
		if at := g.At + i; at < len(s.Out) && rowsOf(&o, s)*o.Cols > len(s.Out[at]) {
			return fmt.Errorf("bug: a step from rank 0 has more rows of %s than this rank was started with", o.Name)
		}
	}
	return nil
}

// results returns the used parts of a step's outputs, without the rows that a chosen token
// replaces.
func results(m *manifest.Manifest, s *device.Step) (list [][]float32) {
	g := &m.Graphs[s.Graph]
	for i, o := range g.Outputs {
		rows := rowsOf(&o, s)
		at, replaced := g.At+i, m.Replaced(&o)
		for from := 0; from < rows && at < len(s.Out); from++ {
			to := from
			for to < rows && !(replaced && s.Chosen[to] >= 0) {
				to++
			}
			if to > from {
				list = append(list, s.Out[at][from*o.Cols:to*o.Cols])
			}
			from = to
		}
	}
	return list
}

// config returns the configuration of rank 0 with the given number of threads.
func (o *opening) config(threads int) (device.Config, error) {
	for _, n := range []int{o.Pages, o.MaxTokens, o.MaxOutRows, o.MaxSeqs} {
		if n < 1 || n > 1<<24 {
			return device.Config{}, errors.New("rank 0 sent sizes that are out of range")
		}
	}
	for _, n := range []int{o.Cells, o.MaxCells, o.MaskWords, o.MaxPages} {
		if n < 0 || n > 1<<24 {
			return device.Config{}, errors.New("rank 0 sent numbers of cells, pages or mask words that are out of range")
		}
	}
	for _, a := range o.Outputs {
		if min(a.Rows, a.Cols) < 0 || max(a.Rows, a.Cols) > 1<<24 {
			return device.Config{}, errors.New("rank 0 sent sizes of outputs that are out of range")
		}
	}
	c := device.Config{
		Threads: threads, Pages: o.Pages, MaxTokens: o.MaxTokens, MaxOutRows: o.MaxOutRows, MaxSeqs: o.MaxSeqs,
		MaskWords: o.MaskWords, MaxPages: o.MaxPages, Cells: o.Cells, MaxCells: o.MaxCells, Outputs: o.Outputs,
	}
	if o.Settings.Pin {
		c.CPUs = cpu.Pins(threads)
	}
	return c, c.Check()
}

// openingOf returns the opening for rank 0's configuration.
func openingOf(c *device.Config) opening {
	return opening{
		Pages: c.Pages, MaxTokens: c.MaxTokens, MaxOutRows: c.MaxOutRows, MaxSeqs: c.MaxSeqs, MaskWords: c.MaskWords, MaxPages: c.MaxPages,
		Cells: c.Cells, MaxCells: c.MaxCells, Outputs: c.Outputs,
	}
}
