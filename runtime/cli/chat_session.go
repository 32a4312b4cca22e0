//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/interrupt"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A chatSession is a conversation.
type chatSession struct {
	m        *model
	tok      *tokenizer.Tokenizer
	template *chat.Template
	stops    []int32
	sampler  sampler
	words    []string             // texts that end a response
	limit    func(prompt int) int // maximum tokens of a response; 0: no limit
	terminal bool                 // input and output are a terminal
	editing  bool                 // with a line editor
	eng      *engine.Engine
	logits   int
	drafts   *drafting

	budget int // maximum tokens of reasoning; -1: no limit
	render chat.RenderOptions

	messages []chat.Message
}

// notice prints a message to the user.
func (s *chatSession) notice(format string, args ...any) {
	fmt.Fprintf(s.m.Stderr, format+"\n", args...)
}

// system sets the system message; "" removes it.
func (s *chatSession) system(text string) {
	if len(s.messages) > 0 && s.messages[0].Role == "system" {
		s.messages = s.messages[1:]
	}
	if text != "" {
		s.messages = append([]chat.Message{{Role: "system", Content: text}}, s.messages...)
	}
}

// reset deletes the conversation except for the system message.
func (s *chatSession) reset() {
	if len(s.messages) > 0 && s.messages[0].Role == "system" {
		s.messages = s.messages[:1]
		return
	}
	s.messages = nil
}

// run reads messages and responds until the input ends or the user leaves.
func (s *chatSession) run(ctx context.Context, signals <-chan os.Signal, history bool) error {
	source, err := s.source(history)
	if err != nil {
		return err
	}
	defer source.close()
	in := &chatInput{source: source, lines: make(chan chatLine, 1)}
	if s.terminal {
		s.notice("%s. Type a message, or /help for commands.", s.m.manifest.Name)
	}
	interrupted := false // by Ctrl-C, since the last message
	for {
		var sig os.Signal
		select {
		case got := <-in.next():
			in.reading = false
			switch {
			case errors.Is(got.err, io.EOF):
				return nil
			case errors.Is(got.err, errInterrupted):
				sig = os.Interrupt
			case errors.Is(got.err, errPaste):
				s.notice("%v", got.err)
			case got.err != nil:
				return got.err
			default:
				interrupted = false
				if err := s.take(ctx, got.text, signals); errors.Is(err, errLeave) {
					return nil
				} else if err != nil {
					return err
				}
			}
		case sig = <-signals:
			if s.terminal {
				s.notice("") // the cursor is behind the prompt
			}
		}
		if sig == nil {
			continue
		}
		if interrupted || !s.stays(sig) {
			return interrupt.Stopped{Signal: sig}
		}
		interrupted = true
		s.notice("another Ctrl-C or /quit leaves")
		if in.reading {
			fmt.Fprint(s.m.Stderr, chatPrompt)
		}
	}
}

// source returns the source of the lines: with an editor on terminals that can
// move the cursor.
func (s *chatSession) source(history bool) (lineSource, error) {
	plain := newPlainSource(s.m.Stdin)
	if !s.terminal {
		return plain, nil
	}
	editor, err := newChatEditor(s.m.Stdin.(*os.File), s.m.Stdout.(*os.File))
	if err != nil {
		return nil, err
	}
	if s.editing = editor != nil; !s.editing {
		plain.prompt = s.m.Stderr
		return plain, nil
	}
	if history {
		if err := editor.remember(); err != nil {
			s.notice("messages of this chat are not kept: %v", err)
		}
	}
	return editor, nil
}

// stays reports whether the chat goes on after a signal: on a terminal, Ctrl-C
// stops only the response.
func (s *chatSession) stays(sig os.Signal) bool { return s.terminal && sig == os.Interrupt }

// take runs a command, or sends a message and answers it.
func (s *chatSession) take(ctx context.Context, text string, signals <-chan os.Signal) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	known, err := s.command(text)
	switch {
	case !known:
		return s.interruptible(ctx, text, signals)
	case err == nil || errors.Is(err, errLeave):
		return err
	case s.terminal:
		s.notice("%v", err)
		return nil
	}
	return wrong(err)
}

// interruptible answers a message until a signal comes.
func (s *chatSession) interruptible(ctx context.Context, text string, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	ended := make(chan os.Signal, 1)
	go func() {
		select {
		case sig := <-signals:
			stop()
			ended <- sig
		case <-done:
			ended <- nil
		}
	}()
	err := s.answer(ctx, text)
	close(done)
	if sig := <-ended; sig != nil && err == nil && !s.stays(sig) {
		return interrupt.Stopped{Signal: sig}
	}
	return err
}

// answer adds the user's message and the model's response to the conversation.
func (s *chatSession) answer(ctx context.Context, text string) error {
	before := s.messages
	s.messages = append(slices.Clone(s.messages), chat.Message{Role: "user", Content: text})
	ids, err := s.prompt()
	if err != nil {
		s.messages = before
		if s.terminal {
			s.notice("%v", err)
			return nil
		}
		return wrong(err)
	}
	reply, err := s.generate(ctx, ids)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	s.messages = append(s.messages, chat.Message{Role: "assistant", Content: reply})
	return nil
}

// prompt returns the conversation's tokens. If the context has no room for all
// of them and a response, the oldest turns are omitted.
func (s *chatSession) prompt() ([]int32, error) {
	room := s.eng.Options().Context
	dropped := 0
	for {
		p, err := s.template.Encode(s.tok, s.messages, s.render)
		if err != nil {
			return nil, err
		}
		if len(p.IDs) == 0 {
			return nil, errors.New("the template gives an empty prompt")
		}
		reserve := min(max(room/4, 1), 256)
		if most := s.limit(len(p.IDs)); most > 0 {
			reserve = min(reserve, most)
		}
		if len(p.IDs)+reserve <= room {
			if dropped > 0 {
				s.notice("[the conversation exceeds the context of %d tokens: dropped its oldest %d messages]", room, dropped)
			}
			return p.IDs, nil
		}
		n := s.dropOldestTurn()
		if n == 0 {
			return nil, fmt.Errorf("the prompt has %d tokens, the context %d, and a response needs %d: shorten the message", len(p.IDs), room, reserve)
		}
		dropped += n
	}
}

// dropOldestTurn removes the first user message and everything up to the next one.
// It returns the number of messages removed, or 0 if there is only one turn.
func (s *chatSession) dropOldestTurn() int {
	first := 0
	if len(s.messages) > 0 && s.messages[0].Role == "system" {
		first = 1
	}
	next := first + 1
	for next < len(s.messages) && s.messages[next].Role != "user" {
		next++
	}
	if next >= len(s.messages) {
		return 0
	}
	s.messages = slices.Delete(slices.Clone(s.messages), first, next)
	return next - first
}

// reasoning returns the mask that ends the reasoning of a response after its budget.
func (s *chatSession) reasoning(ids []int32) decode.Mask {
	if s.budget < 0 || !s.template.MarksReasoning() {
		return nil
	}
	read := s.template.NewReader(s.tok, ids, chat.ReaderOptions{Reasoning: true})
	end := s.template.ReasoningEnd(s.tok)
	return decode.Reasoning{
		Inside: read.Reasoning(), Budget: s.budget, Push: read.Follow,
		Close: func(again bool) []int32 { return end.Close(false, again) },
	}.Then(nil)
}

// generate streams a response. On a terminal it shows the reasoning before it, dimmed;
// the reasoning is not part of the reply.
func (s *chatSession) generate(ctx context.Context, ids []int32) (reply string, err error) {
	most := s.left(len(ids))
	s.sampler.Restart(len(ids), most, s.reasoning(ids))
	id, err := s.eng.AddQuery(engine.Query{Tokens: ids, TopK: s.sampler.TopK(), Choice: s.sampler.Choice})
	if err != nil {
		return "", err
	}
	defer s.eng.Remove(id) // its KV cache stays for the next turn
	reader := s.template.NewReader(s.tok, ids, chat.ReaderOptions{Reasoning: true})
	thought, stop := false, decode.Stopper{Words: s.words}
	show := func(d chat.Delta) error {
		if s.terminal && d.Reasoning != "" {
			fmt.Fprintf(s.m.Stdout, "\x1b[2m%s\x1b[0m", d.Reasoning)
			thought = true
		}
		if thought && d.Content != "" {
			fmt.Fprint(s.m.Stdout, "\n\n")
			thought = false
		}
		reply += d.Content
		_, err := fmt.Fprint(s.m.Stdout, d.Content)
		return err
	}
	one := &single{eng: s.eng, id: id, logits: s.logits, vocab: s.m.manifest.Vocab, drafter: s.drafts.drafter(s.sampler), history: slices.Clone(ids)}
	n := 0
	more := func(token int32) (bool, error) {
		if slices.Contains(s.stops, token) {
			return false, nil
		}
		n++
		d := reader.Push(token)
		d.Content = stop.Push(d.Content)
		return n < most && !stop.Done, show(d)
	}
	for ended := false; !ended; {
		results, e := s.eng.Infer(ctx)
		if err = e; err != nil {
			break
		}
		if len(results) == 0 || !results[0].Ready {
			continue // another chunk of the prompt
		}
		if ended, err = one.take(results[0], s.sampler, func() int { return most - n }, more); errors.Is(err, engine.ErrFull) {
			err = nil
		}
		if err != nil {
			break
		}
	}
	s.sayLimit(len(ids), n)
	d := reader.Flush()
	d.Content = stop.Push(d.Content) + stop.Flush() + "\n"
	if e := show(d); err == nil {
		err = e
	}
	return reply[:len(reply)-1], err
}

// sayLimit says why a response of n tokens ended if its model did not end it.
func (s *chatSession) sayLimit(prompt, n int) {
	room := s.eng.Options().Context
	switch n {
	case s.limit(prompt):
		s.notice("\n[the response ends here: -n %d tokens; if it repeats itself, try --repeat-penalty 1.1]", n)
	case room - prompt:
		s.notice("\n[the response ends here: the context of %d tokens is full]", room)
	}
}

// left returns how many tokens may follow a prompt.
func (s *chatSession) left(prompt int) int {
	room := s.eng.Options().Context - prompt
	if most := s.limit(prompt); most > 0 {
		return min(most, room)
	}
	return room
}
