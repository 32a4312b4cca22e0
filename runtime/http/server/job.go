//go:build unix

package server

import (
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
)

// mostUser is how many bytes user and cache_salt may have.
const mostUser = 256

// shared are the keys of a request that say for whom it is computed.
type shared struct {
	Priority  *int   `json:"priority"`   // scheduling priority; smaller is more urgent; default 0
	User      string `json:"user"`       // end user of the client; the client's fair share is divided among its users
	CacheSalt string `json:"cache_salt"` // requests share cached prefixes only with the same salt
}

// job says for whom a request is computed, and how urgent it is.
func (s *Server) job(r *http.Request, p shared) (scheduler.Job, error) {
	c := callerOf(r)
	priority := or(p.Priority, max(0, c.MaxPriority))
	switch {
	case priority < access.MostUrgent || priority > access.LeastUrgent:
		return scheduler.Job{}, invalid("priority", "priority: expected a number between %d and %d, smaller is more urgent", access.MostUrgent, access.LeastUrgent)
	case len(p.User) > mostUser:
		return scheduler.Job{}, invalid("user", "user: expected at most %d bytes", mostUser)
	case len(p.CacheSalt) > mostUser:
		return scheduler.Job{}, invalid("cache_salt", "cache_salt: expected at most %d bytes", mostUser)
	}
	if priority < c.MaxPriority {
		return scheduler.Job{}, tooUrgent(c, priority)
	}
	j := scheduler.Job{Client: c.Name, User: p.User, Priority: priority, PrefixScope: c.Name + "\x00" + p.CacheSalt}
	if s.cfg.SharePrefixes {
		j.PrefixScope = "\x00" + p.CacheSalt
	}
	return j, nil
}

// tooUrgent refuses a priority that the operator does not allow.
func tooUrgent(c *access.Caller, asked int) *apiError {
	e := invalid("priority", "priority %d: the key %s may ask for %d or more; smaller is more urgent", asked, c.Name, c.MaxPriority)
	if !c.Keyed {
		e = invalid("priority", "priority %d: without a key, a request may ask for 0 or more; smaller is more urgent", asked)
	}
	e.status = http.StatusForbidden
	return e.withCode("priority_not_allowed")
}
