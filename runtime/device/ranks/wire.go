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

// What rank 0 tells the others: a message is 32-bit words, of which the first
// is one of these. Every rank reads its messages in order.
const (
	msgOpen  = iota + 1 // the words of an opening as JSON, padded with spaces
	msgStep             // the words of a step (appendStep)
	msgCopy             // pages: to, from
	msgMove             // page and row to, page and row from
	msgPing             // answer, to show that you are there
	msgClose            // the model; another may be opened
	msgLeave            // say so when nothing more will come from you, and wait for msgGo
	msgGo               // leave the job
	msgJoin             // the GPUs' group, and say so: the words of NCCL's id
)

// An opening is all that a rank needs to start like rank 0.
type opening struct {
	Settings Settings `json:"settings"`
	Hash     string   `json:"hash"`

	Pages, MaxTokens, MaxOutRows, MaxSeqs, MaskWords, MaxPages int
	Outputs                                                    []device.Array
}

// A reply says how opening went on a rank: empty errors are good.
type reply struct {
	Error  string `json:"error,omitempty"`
	Hash   string `json:"hash"`
	Source string `json:"source"`
}

// words spells a message's head.
func words(what int32, rest ...int32) []int32 {
	return append(append(make([]int32, 0, 8), what), rest...)
}

// appendJSON appends a value as JSON, in whole words.
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

// bytesOf are words as they lie in memory: ranks of one job have one byte order.
func bytesOf[T int32 | float32](w []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
}

// wordsOf reads a message.
func wordsOf(data []byte) ([]int32, error) {
	if len(data) < 4 || len(data)%4 != 0 {
		return nil, fmt.Errorf("a message of %d bytes came from rank 0", len(data))
	}
	w := make([]int32, len(data)/4)
	copy(bytesOf(w), data)
	return w, nil
}

// results are the parts of the outputs that a step fills.
func results(m *manifest.Manifest, s *device.Step) (list [][]float32) {
	g := &m.Graphs[s.Graph]
	for i, o := range g.Outputs {
		rows := map[string]int{"tokens": s.Tokens, "out_rows": s.OutRows, "sequences": s.Seqs}[o.Rows]
		if at := g.At + i; at < len(s.Out) && rows > 0 {
			list = append(list, s.Out[at][:rows*o.Cols])
		}
	}
	return list
}

// config is the shape that rank 0 opened the model with.
func (o *opening) config(threads int) (device.Config, error) {
	for _, n := range []int{o.Pages, o.MaxTokens, o.MaxOutRows, o.MaxSeqs} {
		if n < 1 || n > 1<<24 {
			return device.Config{}, errors.New("rank 0 opens the model with sizes that cannot be")
		}
	}
	c := device.Config{
		Threads: threads, Pages: o.Pages, MaxTokens: o.MaxTokens, MaxOutRows: o.MaxOutRows, MaxSeqs: o.MaxSeqs,
		MaskWords: o.MaskWords, MaxPages: o.MaxPages, Outputs: o.Outputs,
	}
	if o.Settings.Pin {
		c.CPUs = cpu.Pins(threads)
	}
	return c, nil
}

// openingOf is what rank 0 tells of its own configuration.
func openingOf(c *device.Config) opening {
	return opening{
		Pages: c.Pages, MaxTokens: c.MaxTokens, MaxOutRows: c.MaxOutRows, MaxSeqs: c.MaxSeqs, MaskWords: c.MaskWords, MaxPages: c.MaxPages,
		Outputs: c.Outputs,
	}
}
