//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a request's JSON: far more than any tool's schema
// needs, far less than would exhaust a stack.
const maxDepth = 100

// Memory of a request's decoded JSON: bytes per byte of text, and per value. The
// largest value is an empty message, {}.
const (
	bytesOfByte  = 3
	bytesOfValue = 160
)

// readJSON reads a request's body into v.
func (s *Server) readJSON(r *http.Request, v any) error {
	data, err := s.readBody(r)
	if err != nil {
		return err
	}
	s.keepAlive(r, v, data)
	return s.work(r, func(func() error) error {
		if len(bytes.TrimSpace(data)) == 0 {
			return invalid("", "the request's body is empty; expected a JSON object")
		}
		if !utf8.Valid(data) {
			return invalid("", "the request's body is not valid UTF-8")
		}
		depth, values := measure(data)
		if depth > maxDepth {
			return invalid("", "the request's JSON is nested more than %d levels deep", maxDepth)
		}
		if err := s.take(r, "", int64(bytesOfByte*len(data)+bytesOfValue*values)); err != nil {
			return err
		}
		if err := decodeJSON(data, v); err != nil {
			return badJSON(err)
		}
		return nil
	})
}

// readBody reads a request's body and decodes its content coding.
func (s *Server) readBody(r *http.Request) ([]byte, error) {
	coding, err := codingOf(r)
	if err != nil {
		return nil, err
	}
	data, err := s.readAll(r, r.Body, func() error { return nil })
	if err != nil || coding == nil {
		return data, err
	}
	return s.decoded(r, coding, data)
}

// readAll reads what the client sent. It reserves memory as data arrives, not by
// Content-Length. It calls tick before each piece.
func (s *Server) readAll(r *http.Request, body io.Reader, tick func() error) ([]byte, error) {
	const piece = 32 << 10
	var data []byte
	for {
		if err := tick(); err != nil {
			return nil, err
		}
		if cap(data)-len(data) < piece/8 {
			grown := max(piece, 2*cap(data))
			if err := s.take(r, "", int64(grown)); err != nil {
				return nil, err
			}
			data = append(make([]byte, 0, grown), data...)
		}
		n, err := body.Read(data[len(data):min(cap(data), len(data)+piece)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			var large *http.MaxBytesError
			var e *apiError
			if errors.As(err, &large) || errors.As(err, &e) {
				return nil, err
			}
			return nil, invalid("", "the request's body cannot be read: %v", err)
		}
	}
}

// badJSON converts an error of json.Unmarshal.
func badJSON(err error) error {
	var e *apiError
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &kind):
		return wrongKind(kind)
	case errors.As(err, &syntax):
		return invalid("", "the request's body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return invalid("", "invalid request body: %v", err)
}

// wrongKind returns the error for a value of the wrong JSON type.
func wrongKind(e *json.UnmarshalTypeError) error {
	field := e.Field
	for _, common := range []string{"sampling.", "structured.", "shared.", "reasoningKeys.", "ollamaCommon."} { // keys common to several requests
		field = strings.TrimPrefix(field, common)
	}
	if field == "" {
		return invalid("", "the request's body: expected %s, found %s", kindName(e.Type), e.Value)
	}
	return invalid(field, "%s: expected %s, found %s", field, kindName(e.Type), e.Value)
}

// kindName returns the name of a type of JSON values.
func kindName(t reflect.Type) string {
	return map[reflect.Kind]string{
		reflect.String: "a text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "an object", reflect.Struct: "an object",
		reflect.Int: "a whole number", reflect.Int32: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
	}[t.Kind()]
}

// inside converts an error of json.Unmarshal of a part of a request. Its text continues
// the part's path.
func inside(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return fmt.Errorf(": %w", badJSON(err))
	}
	path := ""
	if kind.Field != "" {
		path = "." + kind.Field
	}
	return fmt.Errorf("%s: expected %s, found %s", path, kindName(kind.Type), kind.Value)
}

// measure returns the nesting depth of a JSON text and an upper bound of its number of
// values.
func measure(data []byte) (deepest, values int) {
	level, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			level++
			values++
			deepest = max(deepest, level)
		case c == ',':
			values++
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest, values
}

// depth returns the nesting depth of a JSON text.
func depth(data []byte) int {
	deepest, _ := measure(data)
	return deepest
}
