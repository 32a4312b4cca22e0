//go:build unix

package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
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

// results returns the used parts of a step's outputs, without the rows that a chosen token
// replaces.
func results(m *manifest.Manifest, s *device.Step) (list [][]float32) {
	g := &m.Graphs[s.Graph]
	for i, o := range g.Outputs {
		rows := map[string]int{"tokens": s.Tokens, "out_rows": s.OutRows, "sequences": s.Seqs}[o.Rows]
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
	if min(o.Cells, o.MaxCells) < 0 || max(o.Cells, o.MaxCells) > 1<<24 {
		return device.Config{}, errors.New("rank 0 sent numbers of cells that are out of range")
	}
	c := device.Config{
		Threads: threads, Pages: o.Pages, MaxTokens: o.MaxTokens, MaxOutRows: o.MaxOutRows, MaxSeqs: o.MaxSeqs,
		MaskWords: o.MaskWords, MaxPages: o.MaxPages, Cells: o.Cells, MaxCells: o.MaxCells, Outputs: o.Outputs,
	}
	if o.Settings.Pin {
		c.CPUs = cpu.Pins(threads)
	}
	return c, nil
}

// openingOf returns the opening for rank 0's configuration.
func openingOf(c *device.Config) opening {
	return opening{
		Pages: c.Pages, MaxTokens: c.MaxTokens, MaxOutRows: c.MaxOutRows, MaxSeqs: c.MaxSeqs, MaskWords: c.MaskWords, MaxPages: c.MaxPages,
		Cells: c.Cells, MaxCells: c.MaxCells, Outputs: c.Outputs,
	}
}
