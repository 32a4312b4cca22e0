//go:build unix

package server

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// The kinds of blocks.
const (
	reasoningBlock = iota
	textBlock
	callBlock
)

// A block is a part of an answer: reasoning, text, or a tool call.
type block struct {
	index int
	kind  int
	id    string // of a call
	name  string // of a call's function
	text  strings.Builder
	call  int    // index of the call in the answer
	item  string // id of the output item, once it has one
	cut   bool   // the answer ended inside it, at its maximum length

	events []scheduler.Event // tokens of the text
}

// arguments returns the arguments of a call: an empty object if it was cut off.
func (b *block) arguments() json.RawMessage {
	if data := json.RawMessage(b.text.String()); json.Valid(data) {
		return data
	}
	return json.RawMessage("{}")
}

// A blockWriter writes the blocks of an answer as they are generated.
type blockWriter interface {
	begin(b *block) error
	add(b *block, text string, events []scheduler.Event) error // b contains the text
	end(b *block) error
}

// A blockSplitter splits the answer of a conversation into blocks.
type blockSplitter struct {
	list    []*block
	open    *block
	held    string            // white space before a text
	waiting []scheduler.Event // tokens whose text is yet to come, and those of held
	w       blockWriter
}

// blocks writes the blocks of the only choice of an answer. flush is called after the
// blocks of each step. It returns the reason for the end.
func (c *chatRun) blocks(ctx context.Context, w blockWriter, flush func() error) (list []*block, finish string, err error) {
	b := blockSplitter{w: w}
	for {
		pieces, err := c.answer.next(ctx)
		if err != nil {
			return nil, "", err
		}
		if len(pieces) == 0 {
			return b.list, finish, b.finish(finish)
		}
		for _, p := range pieces {
			if err := b.push(p); err != nil {
				return nil, "", err
			}
			finish = p.finish
		}
		if err := flush(); err != nil {
			return nil, "", err
		}
	}
}

// push adds a piece of the answer.
func (b *blockSplitter) push(p piece) error {
	if p.delta.Reasoning != "" {
		if err := b.add(reasoningBlock, p.delta.Reasoning, nil); err != nil {
			return err
		}
	}
	b.waiting = append(b.waiting, p.events...)
	if p.delta.Content != "" {
		if err := b.content(p.delta.Content); err != nil {
			return err
		}
	}
	for _, d := range p.delta.Calls {
		if err := b.callDelta(d); err != nil {
			return err
		}
	}
	return nil
}

// content adds text. White space before a text waits for the text, and is dropped if
// none comes: models write line feeds between reasoning and calls.
func (b *blockSplitter) content(text string) error {
	if b.open == nil || b.open.kind != textBlock {
		if text = b.held + text; strings.TrimLeftFunc(text, unicode.IsSpace) == "" {
			b.held = text
			return nil
		}
		if len(b.list) > 0 {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
	}
	events := b.waiting
	b.waiting = nil
	return b.add(textBlock, text, events)
}

// finish ends the answer. An answer of white space alone is a text.
func (b *blockSplitter) finish(reason string) error {
	if len(b.list) == 0 && b.held != "" {
		if err := b.add(textBlock, b.held, b.waiting); err != nil {
			return err
		}
	}
	if b.open != nil {
		b.open.cut = reason == scheduler.FinishLength
	}
	return b.close()
}

// callDelta adds a part of a tool call.
func (b *blockSplitter) callDelta(d chat.CallDelta) error {
	if b.open == nil || b.open.kind != callBlock || b.open.call != d.Index {
		if err := b.start(&block{kind: callBlock, id: d.ID, name: d.Name, call: d.Index}); err != nil {
			return err
		}
	}
	return b.add(callBlock, d.Arguments, nil)
}

// add adds text to the open block, or begins one of that kind.
func (b *blockSplitter) add(kind int, text string, events []scheduler.Event) error {
	if b.open == nil || b.open.kind != kind {
		if err := b.start(&block{kind: kind}); err != nil {
			return err
		}
	}
	if kind != textBlock {
		b.waiting = nil
	}
	b.open.text.WriteString(text)
	b.open.events = append(b.open.events, events...)
	if text == "" || b.w == nil {
		return nil
	}
	return b.w.add(b.open, text, events)
}

// start ends the open block and begins another one.
func (b *blockSplitter) start(next *block) error {
	if err := b.close(); err != nil {
		return err
	}
	next.index = len(b.list)
	b.list, b.open = append(b.list, next), next
	b.held = ""
	if b.w == nil {
		return nil
	}
	return b.w.begin(next)
}

// close ends the open block.
func (b *blockSplitter) close() error {
	last := b.open
	if b.open = nil; last == nil || b.w == nil {
		return nil
	}
	return b.w.end(last)
}
