//go:build unix

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// An apiError is an error of a request. Its JSON form is OpenAI's.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
	retry   int     // seconds; 0: no Retry-After
	codings string  // the content codings that the service reads; "": no Accept-Encoding

	prompt, most int // of a prompt that is too long: its tokens, and the maximum; 0: another error
}

func (e *apiError) Error() string { return e.Message }

// Types of errors.
const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// invalid returns an error with status 400; param is the invalid key of the request.
func invalid(param, format string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: invalidRequest}
	if param != "" {
		e.Param = &param
	}
	return e
}

// withCode sets the error code for programs.
func (e *apiError) withCode(code string) *apiError {
	e.Code = &code
	return e
}

// tooLong returns the error of a prompt with more tokens than most, which are those of
// the context, or fewer where the answer needs some.
func (s *Server) tooLong(param string, tokens, most int) *apiError {
	e := invalid(param, "this model's maximum context length is %d tokens; the prompt has %d; shorten it", s.cfg.Context, tokens)
	e.prompt, e.most = tokens, most
	return e.withCode("context_length_exceeded")
}

// errEnding is the error of requests that arrive during shutdown.
var errEnding = errors.New("the service is shutting down")

// failure converts any error to an apiError.
func failure(err error) *apiError {
	var e *apiError
	var large *http.MaxBytesError
	var lost interface { // a rank of the model that no longer responds
		error
		LostRank() int
	}
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &large):
		return (&apiError{status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d bytes", large.Limit), Type: invalidRequest}).withCode("request_too_large")
	case errors.Is(err, scheduler.ErrFull):
		return (&apiError{status: http.StatusTooManyRequests, Message: "too many requests are waiting; try again later", Type: "rate_limit_error", retry: 1}).withCode("queue_full")
	case errors.Is(err, scheduler.ErrWaited):
		return (&apiError{status: http.StatusServiceUnavailable, Message: "the request waited too long in the queue; try again later", Type: serverError, retry: 5}).withCode("queue_timeout")
	case errors.Is(err, scheduler.ErrClosed), errors.Is(err, errEnding):
		return (&apiError{status: http.StatusServiceUnavailable, Message: "the service is shutting down", Type: serverError, retry: 5}).withCode("shutting_down")
	case errors.As(err, &lost):
		return (&apiError{status: http.StatusServiceUnavailable, Message: lost.Error(), Type: serverError, retry: 10}).withCode("rank_lost")
	case errors.Is(err, context.DeadlineExceeded):
		return (&apiError{status: http.StatusServiceUnavailable, Message: "the request exceeded the time limit of this service", Type: serverError, retry: 5}).withCode("timeout")
	case errors.Is(err, context.Canceled): // read by clients that closed only their side of the connection
		return (&apiError{status: statusGone, Message: "the client closed the connection, or its side of it, before the answer", Type: invalidRequest}).withCode("client_closed_request")
	case errors.Is(err, decode.ErrForbidden):
		return invalid("", "%v", err)
	}
	return &apiError{status: http.StatusInternalServerError, Message: err.Error(), Type: serverError}
}

// writeError writes an error response in the format of the request's API.
func writeError(w http.ResponseWriter, r *http.Request, e *apiError) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	if e.codings != "" {
		w.Header().Set("Accept-Encoding", e.codings)
	}
	_, body := errorFormat(r)(e)
	writeJSON(w, e.status, body)
}

// errorFormat returns the function that formats errors for a request's API: the name of
// the event in a stream, if it has one, and the body.
func errorFormat(r *http.Request) func(e *apiError) (event string, body any) {
	switch {
	case messagesPath(r):
		return messageError
	case ollamaPath(r):
		return ollamaError
	case inferflowPath(r):
		return inferflowError(r)
	}
	return func(e *apiError) (string, any) {
		return "", struct {
			Error *apiError `json:"error"`
		}{e}
	}
}

// answerTimeout limits the time that a client takes to receive a response that is not
// streamed.
const answerTimeout = time.Minute

// writeJSON writes a JSON response.
func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be written as JSON","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)) // an error leaves the server's own deadline
	w.WriteHeader(status)
	w.Write(data) // the client is gone
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytesBuffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b, err
}

// A bytesBuffer is a byte slice with a Write method.
type bytesBuffer []byte

func (b *bytesBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
