//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/text/grammar"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

// TestForcedCallMark: a call that must come begins with the special token that
// marks it, which nothing else may contain.
func TestForcedCallMark(t *testing.T) {
	t.Parallel()
	vocab := map[string]int{"<|python_tag|>": 0, "<|end|>": 1, "<|other|>": 2}
	for c := byte(' '); c < 127; c++ {
		name := string(rune(c))
		if c == ' ' {
			name = "Ġ"
		}
		vocab[name] = len(vocab)
	}
	data, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	special := ""
	for i, s := range []string{"<|python_tag|>", "<|end|>", "<|other|>"} {
		special += fmt.Sprintf(`,{"id":%d,"content":%q,"special":true,"normalized":false}`, i, s)
	}
	tok, err := tokenizerfile.Load(tokenizerfile.Files{"tokenizer.json": []byte(`{"version":"1.0","added_tokens":[` + special[1:] + `],"normalizer":null,
"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":` + string(data) + `,"merges":[]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	make := constrain(len(vocab), tok, []int32{1}, grammar.CallFormat{Open: "<|python_tag|>", Name: "name", Arguments: "parameters"})
	allowed := func(bits []uint64, id int32) bool { return bits[id/64]>>(id%64)&1 == 1 }
	call, err := make(server.Constraint{Kind: "tool", Tools: []server.Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{}}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	bits, err := call.Mask()
	if err != nil || !allowed(bits, 0) || allowed(bits, 1) || allowed(bits, 2) {
		t.Fatalf("at the begin %x, %v", bits, err)
	}
	for _, id := range append([]int32{0}, tok.Encode(`{"name":"f","parameters":{}}`, false)...) {
		if err := call.Accept(id); err != nil {
			t.Fatalf("%q: %v", tok.Token(id), err)
		}
	}
	if bits, err = call.Mask(); !call.Done() && (err != nil || !allowed(bits, 1) || allowed(bits, 0)) {
		t.Errorf("at the end %x, %v", bits, err)
	}
	text, err := make(server.Constraint{Kind: "regex", Text: `.*`})
	if err != nil {
		t.Fatal(err)
	}
	if bits, err = text.Mask(); err != nil || allowed(bits, 0) || allowed(bits, 2) {
		t.Errorf("a text may hold a mark: %x, %v", bits, err)
	}
}
