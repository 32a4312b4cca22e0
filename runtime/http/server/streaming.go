//go:build unix

package server

import (
	"bytes"
	"net/http"
)

// A streamer is a request whose answer may be a stream.
type streamer interface {
	// streamKeys returns the keys that ask for a stream, and whether the answer is one
	// without them.
	streamKeys() (keys []string, byDefault bool)
}

var streamKey = []string{"stream"}

func (*chatRequest) streamKeys() ([]string, bool)       { return streamKey, false }
func (*completionRequest) streamKeys() ([]string, bool) { return streamKey, false }
func (*infillRequest) streamKeys() ([]string, bool)     { return streamKey, false }
func (*responsesRequest) streamKeys() ([]string, bool)  { return streamKey, false }
func (*messagesRequest) streamKeys() ([]string, bool)   { return streamKey, false }
func (*ollamaCommon) streamKeys() ([]string, bool)      { return streamKey, true }
func (*inferflowRequest) streamKeys() ([]string, bool) {
	return []string{"is_streaming_mode", "stream"}, false
}

// keepAlive keeps the answer to a body alive if the body asks for a stream. Decoding it
// may have to wait for the client's CPU time, so this scans for the keys alone.
func (s *Server) keepAlive(r *http.Request, v any, data []byte) {
	q, ok := v.(streamer)
	x := exchangeOf(r)
	if !ok || x == nil || r.URL.Path == "/v1/messages/count_tokens" || r.URL.Path == "/v1/responses/input_tokens" {
		return
	}
	keys, streams := q.streamKeys()
	for _, key := range keys {
		if value, found := flag(data, key); found {
			streams = value
		}
		if streams {
			s.newSender(x, r, true)
			return
		}
	}
}

// flag returns the value of a key of a JSON object if it is true or false.
func flag(data []byte, key string) (value, found bool) {
	level := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			level++
		case '}', ']':
			level--
		case '"':
			end := i + 1
			for end < len(data) && data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			if level == 1 && end < len(data) && string(data[i+1:end]) == key {
				if rest, ok := bytes.CutPrefix(bytes.TrimLeft(data[end+1:], " \t\r\n"), []byte(":")); ok {
					rest = bytes.TrimLeft(rest, " \t\r\n")
					value = bytes.HasPrefix(rest, []byte("true"))
					found = value || bytes.HasPrefix(rest, []byte("false"))
				}
			}
			i = end
		}
	}
	return value, found
}
