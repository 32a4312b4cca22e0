//go:build unix

package server

import (
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// mostUser is how many bytes user and cache_salt may have.
const mostUser = 256

// shared are the keys of a request that say for whom it is computed.
type shared struct {
	Priority  int    `json:"priority"`   // smaller is more urgent
	User      string `json:"user"`       // a part of the client's own share
	CacheSalt string `json:"cache_salt"` // prefixes are reused among requests of one salt
}

// job says for whom a request is computed, and how urgent it is.
func (s *Server) job(r *http.Request, p shared) (scheduler.Job, error) {
	switch {
	case p.Priority < -100 || p.Priority > 100:
		return scheduler.Job{}, invalid("priority", "priority: expected a number between -100 and 100, smaller is more urgent")
	case len(p.User) > mostUser:
		return scheduler.Job{}, invalid("user", "user: expected at most %d bytes", mostUser)
	case len(p.CacheSalt) > mostUser:
		return scheduler.Job{}, invalid("cache_salt", "cache_salt: expected at most %d bytes", mostUser)
	}
	c := client(r)
	return scheduler.Job{Client: c, User: p.User, Priority: p.Priority, Prefixes: c + "\x00" + p.CacheSalt}, nil
}
