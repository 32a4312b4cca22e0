//go:build unix

package server

import (
	"errors"
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// A completionRun holds the generations of all prompts of a request for completions.
type completionRun struct {
	s       *Server
	req     *completionRequest
	form    completionForm
	prompts []generation
	answers []*answer    // by prompt; valid after a nil from begun
	begun   []chan error // receive the start error of each prompt; none follows an error
}

// A completionForm makes responses in the form of a service's API.
type completionForm interface {
	// read returns the reader of a choice's tokens; nil: there is no tokenizer.
	read(g *generation, c *choice) reader
	// whole returns the response, from the pieces of each prompt's choices.
	whole(pieces [][]piece) any
	// events returns the events of a stream for a piece of a prompt's choice; first: none
	// of the choice was sent yet.
	events(at int, p piece, first bool) []any
	// end ends a stream.
	end(out *sender) error
}

// respond runs the generations and writes the response, a stream to out.
func (c *completionRun) respond(w http.ResponseWriter, r *http.Request, out *sender) error {
	c.start(r)
	if c.req.Stream {
		return c.stream(r, out)
	}
	pieces := make([][]piece, len(c.prompts))
	for at := range c.prompts {
		a, err := c.answer(at)
		if err != nil {
			return err
		}
		if pieces[at], err = a.all(r.Context()); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, c.form.whole(pieces))
	return nil
}

// start starts the generations of all prompts, but no more at a time than the service
// can run, so that a request with many prompts does not fill the queue.
func (c *completionRun) start(r *http.Request) {
	c.answers, c.begun = make([]*answer, len(c.prompts)), make([]chan error, len(c.prompts))
	for i := range c.begun {
		c.begun[i] = make(chan error, 1)
	}
	ended := make(chan struct{}, len(c.prompts)) // buffered, because the scheduler must not block
	begin := func(i int) (err error) {
		g := c.prompts[i]
		g.ended = func() { ended <- struct{}{} }
		if c.answers[i], err = c.s.generate(r, &c.req.sampling, g); err != nil {
			return err
		}
		for _, choice := range c.answers[i].choices {
			choice.reader = c.form.read(&g, choice)
		}
		return nil
	}
	most, running := max(1, c.s.cfg.Sequences/c.req.choices()), 0
	one := func(i int) error {
		for {
			if running < most {
				err := begin(i)
				if running == 0 || !errors.Is(err, scheduler.ErrFull) {
					running++
					return err
				}
			}
			select { // each generation that ends makes room in the queue
			case <-ended:
				running--
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
	}
	go func() {
		for i := range c.prompts {
			err := one(i)
			if c.begun[i] <- err; err != nil {
				return
			}
		}
	}()
}

// answer returns the answer to prompt i once its generation has started.
func (c *completionRun) answer(i int) (*answer, error) {
	if err := <-c.begun[i]; err != nil {
		return nil, err
	}
	return c.answers[i], nil
}

// stream sends the answers as server-sent events, one prompt after another.
func (c *completionRun) stream(r *http.Request, out *sender) error {
	for at := range c.prompts {
		a, err := c.answer(at)
		if err != nil {
			return err
		}
		if at == 0 {
			out.admitted()
		}
		begun := map[int]bool{} // choices with a first event
		for {
			pieces, err := a.next(r.Context())
			if err != nil {
				return err
			}
			if len(pieces) == 0 {
				break
			}
			for _, p := range pieces {
				for _, event := range c.form.events(at, p, !begun[p.index]) {
					begun[p.index] = true
					if err := out.add(event); err != nil {
						return err
					}
				}
			}
			if err := out.flush(); err != nil {
				return err
			}
		}
	}
	return c.form.end(out)
}
