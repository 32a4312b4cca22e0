//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Limits of a page of input items; they are OpenAI's.
const (
	itemsOfPage    = 20
	maxItemsOfPage = 100
)

// storedInput answers GET /v1/responses/ID/input_items.
func (s *Server) storedInput(w http.ResponseWriter, r *http.Request) error {
	e := s.stored.get(callerOf(r).Name, r.PathValue("id"))
	if e == nil {
		return noResponse(r.PathValue("id"))
	}
	if err := s.take(r, "response_id", bytesOfListed*e.bytes); err != nil {
		return err
	}
	var items []listedItem
	err := s.work(r, func(tick func() error) (err error) {
		items, err = e.listInput(tick)
		return err
	})
	if err != nil {
		return err
	}
	query, limit := r.URL.Query(), itemsOfPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxItemsOfPage {
			return invalid("limit", "limit: expected a number between 1 and %d", maxItemsOfPage)
		}
	}
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return invalid("order", "order: expected asc or desc")
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(item listedItem) bool { return item.id == after })
		if i < 0 {
			return invalid("after", "after: the input has no item %.80q", after)
		}
		items = items[i+1:]
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	page := map[string]any{"object": "list", "data": items, "has_more": more, "first_id": nil, "last_id": nil}
	if n := len(items); n > 0 {
		page["first_id"], page["last_id"] = items[0].id, items[n-1].id
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// bytesOfListed is the memory of a response that lists a stored input, per byte of it:
// decoded fields, the page and its JSON.
const bytesOfListed = 40

// A listedItem is an item of a stored input, with the fields that requests may leave
// out.
type listedItem struct {
	id   string
	keys map[string]json.RawMessage
}

// MarshalJSON returns the item.
func (i listedItem) MarshalJSON() ([]byte, error) { return marshal(i.keys) }

// listInput returns the items of the input, oldest first. An item without an id gets
// one that follows from its place.
func (e *storedResponse) listInput(tick func() error) ([]listedItem, error) {
	list := make([]listedItem, len(e.input))
	for n, data := range e.input {
		if err := tick(); err != nil {
			return nil, err
		}
		item := listedItem{id: fmt.Sprintf("item_%s_%d", strings.TrimPrefix(e.id, "resp_"), n)}
		var head struct{ ID, Type string }
		if err := json.Unmarshal(data, &item.keys); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return nil, err
		}
		if head.ID != "" {
			item.id = head.ID
		} else {
			item.keys["id"] = json.RawMessage(strconv.Quote(item.id))
		}
		if head.Type == "" || head.Type == "message" {
			item.complete()
		}
		list[n] = item
	}
	return list, nil
}

// complete sets the fields of a message that requests may leave out, and writes a
// content that is a text as a part.
func (i *listedItem) complete() {
	i.keys["type"] = json.RawMessage(`"message"`)
	if _, ok := i.keys["status"]; !ok {
		i.keys["status"] = json.RawMessage(`"completed"`)
	}
	content := i.keys["content"]
	if len(content) == 0 || content[0] != '"' {
		return
	}
	part := `{"type":"input_text","text":`
	if string(i.keys["role"]) == `"assistant"` {
		part = `{"type":"output_text","annotations":[],"text":`
	}
	i.keys["content"] = slices.Concat(json.RawMessage("["+part), content, json.RawMessage("}]"))
}
