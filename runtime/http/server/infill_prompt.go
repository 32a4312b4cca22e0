//go:build unix

package server

import (
	"net/http"
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// An infillPrompt makes prompts whose middle the model writes.
type infillPrompt struct {
	s      *Server
	format *tokenizer.Infill
	front  []int32 // tokens in front of the prompt
	suffix []int32
}

// infillPrompt returns the maker of prompts with a suffix; param is its key.
func (s *Server) infillPrompt(r *http.Request, param, suffix string) (*infillPrompt, error) {
	p := &infillPrompt{s: s}
	if s.cfg.Tokenizer != nil {
		p.format = s.cfg.Tokenizer.Infill()
	}
	if p.format == nil || s.checkIDs(param, p.format.Ends) != nil {
		return nil, invalid(param, "%s: %s has no tokens for infilling; use a model that was trained for it", param, s.cfg.Model)
	}
	bos := int32(s.cfg.Manifest.BOS)
	if around := s.cfg.Tokenizer.Encode("", true); bos >= 0 && (s.cfg.Manifest.AddBOS || len(around) > 0 && around[0] == bos) {
		p.front = []int32{bos}
	}
	var err error
	p.suffix, err = s.userText(r, param, suffix, true)
	return p, err
}

// userText returns the tokens of a text in which users cannot forge special tokens. inner:
// it follows another text.
func (s *Server) userText(r *http.Request, param, text string, inner bool) (ids []int32, err error) {
	err = s.tokenizing(r, param, len(text), func(within tokenizer.Limit) error {
		ids, err = s.cfg.Tokenizer.EncodeText(text, inner, within)
		return err
	})
	return ids, err
}

// stops returns the tokens that end the middle, for a model that ends texts with eos.
func (p *infillPrompt) stops(eos []int32) []int32 { return slices.Concat(eos, p.format.Ends) }

// prompt returns the tokens of the prompt with a prefix; param is its key.
func (p *infillPrompt) prompt(r *http.Request, param string, prefix promptInput) ([]int32, error) {
	ids := prefix.ids
	err := p.s.checkIDs(param, ids)
	if ids == nil {
		ids, err = p.s.userText(r, param, prefix.text, false)
	}
	if err != nil {
		return nil, err
	}
	first, second := append([]int32{p.format.Prefix}, ids...), append([]int32{p.format.Suffix}, p.suffix...)
	if p.format.SuffixFirst {
		first, second = second, first
	}
	out := slices.Concat(p.front, first, second)
	if p.format.Middle >= 0 {
		out = append(out, p.format.Middle)
	}
	return out, nil
}

// infillFile is a file, or a part of one, that an infill prompt shows to the model.
type infillFile struct {
	Name string `json:"filename"` // its name
	Text string `json:"text"`     // its text
}

// files returns the tokens of files in front of a prompt: as many of the last ones as fit
// into room tokens. It reports whether it left any out.
func (p *infillPrompt) files(r *http.Request, param string, files []infillFile, room int) (ids []int32, truncated bool, err error) {
	head, err := p.header(r, param, p.format.Repo, "project")
	if err != nil {
		return nil, false, err
	}
	tail, err := p.header(r, param, p.format.File, "current") // the name of the file with the middle is unknown
	if err != nil {
		return nil, false, err
	}
	var parts [][]int32
	for room -= len(head) + len(tail); len(files) > 0; files = files[:len(files)-1] {
		part, err := p.file(r, param, files[len(files)-1])
		if err != nil {
			return nil, false, err
		}
		if len(part) > room {
			truncated = true
			break
		}
		parts, room = append(parts, part), room-len(part)
	}
	if len(parts) == 0 {
		return nil, truncated, nil
	}
	slices.Reverse(parts)
	return slices.Concat(head, slices.Concat(parts...), tail), truncated, nil
}

// insert puts files in front of a prompt.
func (p *infillPrompt) insert(prompt, files []int32) []int32 {
	return slices.Insert(prompt, len(p.front), files...)
}

// file returns the tokens of a file. Models without a token for files get its name as text.
func (p *infillPrompt) file(r *http.Request, param string, f infillFile) ([]int32, error) {
	if p.format.File < 0 {
		return p.s.userText(r, param, f.Name+"\n"+f.Text+"\n", false)
	}
	head, err := p.header(r, param, p.format.File, f.Name)
	if err != nil {
		return nil, err
	}
	text, err := p.s.userText(r, param, f.Text, true)
	return append(head, text...), err
}

// header returns a token with a name behind it, or nothing if the model has no such token.
func (p *infillPrompt) header(r *http.Request, param string, token int32, name string) ([]int32, error) {
	if token < 0 {
		return nil, nil
	}
	ids, err := p.s.userText(r, param, name+"\n", true)
	return append([]int32{token}, ids...), err
}
