//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// promptFlags specify the prompt; exactly one of them is set.
type promptFlags struct {
	Prompt string `short:"p" placeholder:"TEXT" help:"Prompt."`
	File   string `short:"f" placeholder:"FILE" type:"path" help:"File with the prompt; its bytes are taken as they are."`
	IDs    string `name:"ids" placeholder:"1,2,3" help:"Prompt as token ids."`
}

// prompt returns the ids of the prompt, with the start token if the model uses
// one. Numeric ids are used unchanged.
func (m *model) prompt(f *promptFlags) ([]int32, error) {
	given := 0
	for _, s := range []string{f.Prompt, f.File, f.IDs} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, wrong(errors.New("expected exactly one of -p TEXT, -f FILE and --ids LIST"))
	}
	if f.IDs != "" {
		return m.ids(f.IDs)
	}
	text, err := readText(f.Prompt, f.File)
	if err != nil {
		return nil, err
	}
	return m.encode(text)
}

// encode tokenizes a text as the model expects it.
func (m *model) encode(text string) ([]int32, error) { return m.bin.Encode(text) }

// ids parses a list of token ids and checks them against the vocabulary.
func (m *model) ids(list string) ([]int32, error) {
	ids, err := parseIDs(list)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if int(id) >= m.manifest.Vocab {
			return nil, wrong(fmt.Errorf("token id %d: the vocabulary has %d tokens", id, m.manifest.Vocab))
		}
	}
	return ids, nil
}

// parseIDs parses ids separated by commas, spaces or both, optionally in
// brackets.
func parseIDs(list string) ([]int32, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n[]", r) })
	if len(fields) == 0 {
		return nil, wrong(fmt.Errorf("no token ids in %q; expected a list like 1,2,3", list))
	}
	ids := make([]int32, len(fields))
	for i, s := range fields {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return nil, wrong(fmt.Errorf("token id %q: expected a whole number of 0 or more", s))
		}
		ids[i] = int32(n)
	}
	return ids, nil
}

// readText returns the text, or the content of the file.
func readText(text, file string) (string, error) {
	if file == "" {
		return text, nil
	}
	data, err := os.ReadFile(file)
	return string(data), wrong(err)
}
