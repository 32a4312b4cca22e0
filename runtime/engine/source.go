//go:build unix

package engine

// A source is the encoder's input of an encoder-decoder. Forks share it.
type source struct {
	tokens  []int32
	adapter *Adapter // or nil
	pages   []int32  // KV cache pages, in order
	encoded bool     // its KV cache rows are written
	users   int      // number of live sequences that use it
}

// ready reports whether a sequence of this source can decode. A nil source is ready.
func (x *source) ready() bool { return x == nil || x.encoded }

// release ends one sequence's use of a source.
func (e *Engine) release(x *source) {
	if x == nil {
		return
	}
	if x.users--; x.users == 0 {
		e.pages.free(x.pages)
		x.pages, x.encoded = nil, false
	}
}

// waiting returns the oldest sequence with a source that is not encoded.
func (e *Engine) waiting() *sequence {
	for _, s := range e.seqs {
		if !s.source.ready() {
			return s
		}
	}
	return nil
}

// encode encodes sources, several per step, as long as there are pages for them.
func (e *Engine) encode() error {
	if e.source < 0 {
		return nil
	}
	for {
		e.sources = e.sources[:0]
		w := stepWriter{step: e.step}
		for _, s := range e.seqs {
			x := s.source
			if x.encoded || len(x.pages) > 0 || w.tokens+len(x.tokens) > e.opt.MaxTokens {
				continue
			}
			var ok bool
			if x.pages, ok = e.pages.take(x.pages, pagesFor(len(x.tokens))); !ok {
				continue
			}
			e.sources = append(e.sources, x)
			w.adapter(x.adapter)
			w.cellList(0, nil, len(x.tokens))
			w.add(x.tokens, nil, 0, x.pages)
		}
		if len(e.sources) == 0 {
			return nil
		}
		e.step.Graph, e.step.Typed, e.step.Masked, e.step.Adapted = e.source, true, false, w.adapted
		e.step.Tokens, e.step.OutRows, e.step.Seqs = w.tokens, 0, w.seqs
		err := e.ctx.Submit(e.step)()
		for _, x := range e.sources {
			if x.encoded = err == nil; !x.encoded {
				e.pages.free(x.pages)
				x.pages = x.pages[:0]
			}
		}
		if err != nil {
			return err
		}
	}
}
