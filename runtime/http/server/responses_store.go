//go:build unix

package server

import (
	"container/list"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// A responseStore keeps responses in memory for previous_response_id and item
// references. Only the client that created a response can read it. A response expires
// after keep. If the store is full, the oldest response of the client with the most
// bytes makes room.
type responseStore struct {
	limit int64
	keep  time.Duration
	now   func() time.Time

	mu    sync.Mutex
	used  int64
	byID  map[string]*list.Element // by response id and by output item id
	order list.List                // of *storedResponse, oldest first
	held  map[string]int64         // bytes by client
}

// A storedResponse is a response with the conversation that it belongs to.
type storedResponse struct {
	client  string
	id      string
	answer  json.RawMessage
	input   []json.RawMessage // items of its input
	items   []json.RawMessage // items of the conversation, the output included
	output  map[string]json.RawMessage
	bytes   int64
	expires time.Time
}

func newResponseStore(limit int64, keep time.Duration) *responseStore {
	return &responseStore{limit: limit, keep: keep, now: time.Now, byID: map[string]*list.Element{}, held: map[string]int64{}}
}

// add stores a response with its input and the items of the conversation before its
// output. It drops a response that has no room.
func (s *responseStore) add(client string, out *responseObject, input, items []json.RawMessage) {
	e := &storedResponse{client: client, id: out.ID, input: input, output: map[string]json.RawMessage{}}
	var err error
	if e.answer, err = marshal(out); err != nil {
		return // every part of a response can be written as JSON
	}
	e.items = items[:len(items):len(items)]
	for _, item := range out.Output {
		data, err := marshal(item)
		if err != nil {
			return
		}
		e.items, e.output[item.ID] = append(e.items, data), data
	}
	// Conversations share the items of earlier responses. Each counts them in full,
	// because the earlier responses may be dropped first.
	const entry, perItem = 1024, 64
	e.bytes = entry + int64(len(e.answer))
	for _, data := range e.items {
		e.bytes += int64(len(data)) + perItem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if e.bytes > s.limit {
		return
	}
	for s.used+e.bytes > s.limit {
		s.remove(s.oldestOfLargest())
	}
	e.expires = s.now().Add(s.keep)
	at := s.order.PushBack(e)
	s.byID[e.id] = at
	for id := range e.output {
		s.byID[id] = at
	}
	s.used += e.bytes
	s.held[client] += e.bytes
}

// expire removes expired responses.
func (s *responseStore) expire() {
	for at := s.order.Front(); at != nil && s.now().After(at.Value.(*storedResponse).expires); at = s.order.Front() {
		s.remove(at)
	}
}

// oldestOfLargest returns the oldest response of the client with the most bytes.
func (s *responseStore) oldestOfLargest() *list.Element {
	largest := ""
	for client, n := range s.held {
		if n > s.held[largest] {
			largest = client
		}
	}
	at := s.order.Front()
	for at.Value.(*storedResponse).client != largest {
		at = at.Next()
	}
	return at
}

func (s *responseStore) remove(at *list.Element) {
	e := s.order.Remove(at).(*storedResponse)
	delete(s.byID, e.id)
	for id := range e.output {
		delete(s.byID, id)
	}
	s.used -= e.bytes
	if s.held[e.client] -= e.bytes; s.held[e.client] == 0 {
		delete(s.held, e.client)
	}
}

// find returns the client's response with the id, or with an output item with the id.
func (s *responseStore) find(client, id string) *list.Element {
	s.expire()
	at := s.byID[id]
	if at == nil || at.Value.(*storedResponse).client != client {
		return nil
	}
	return at
}

// get returns a stored response, or nil.
func (s *responseStore) get(client, id string) *storedResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(client, id); at != nil && at.Value.(*storedResponse).id == id {
		return at.Value.(*storedResponse)
	}
	return nil
}

// item returns a stored output item, or nil.
func (s *responseStore) item(client, id string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(client, id); at != nil {
		return at.Value.(*storedResponse).output[id]
	}
	return nil
}

// drop removes a stored response. It returns false if there is none.
func (s *responseStore) drop(client, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(client, id)
	if at == nil || at.Value.(*storedResponse).id != id {
		return false
	}
	s.remove(at)
	return true
}

// noResponse returns the error for a response that is not stored.
func noResponse(id string) *apiError {
	e := invalid("response_id", "there is no stored response %.80q; it was not stored, or has expired", id)
	e.status = http.StatusNotFound
	return e
}

// storedAnswer answers GET /v1/responses/ID.
func (s *Server) storedAnswer(w http.ResponseWriter, r *http.Request) error {
	e := s.stored.get(callerOf(r).Name, r.PathValue("id"))
	if e == nil {
		return noResponse(r.PathValue("id"))
	}
	if text := r.URL.Query().Get("stream"); text != "" && text != "false" {
		return invalid("stream", "stream: a stored response is returned whole; leave it out")
	}
	if err := s.take(r, "response_id", bytesOfByte*e.bytes); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e.answer)
	return nil
}

// dropResponse answers DELETE /v1/responses/ID.
func (s *Server) dropResponse(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !s.stored.drop(callerOf(r).Name, id) {
		return noResponse(id)
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	return nil
}
