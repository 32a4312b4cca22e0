//go:build unix

package server

import (
	"cmp"
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
)

// maxUser bounds the bytes of user, safety_identifier and cache_salt.
const maxUser = 256

// shared holds the keys of a request that identify its client and priority.
type shared struct {
	Priority  *int   `json:"priority"`          // scheduling priority; smaller is more urgent; default 0
	User      string `json:"user"`              // end user of the client; the client's fair share is divided among its users
	Safety    string `json:"safety_identifier"` // newer name of user
	CacheSalt string `json:"cache_salt"`        // requests share cached prefixes only with the same salt
}

// job returns the client and the priority of a request.
func (s *Server) job(r *http.Request, p shared) (scheduler.Job, error) {
	c := callerOf(r)
	priority := or(p.Priority, max(0, c.MaxPriority))
	switch {
	case priority < access.MostUrgent || priority > access.LeastUrgent:
		return scheduler.Job{}, invalid("priority", "priority: expected a number between %d and %d, smaller is more urgent", access.MostUrgent, access.LeastUrgent)
	case len(p.User) > maxUser:
		return scheduler.Job{}, invalid("user", "user: expected at most %d bytes", maxUser)
	case len(p.Safety) > maxUser:
		return scheduler.Job{}, invalid("safety_identifier", "safety_identifier: expected at most %d bytes", maxUser)
	case len(p.CacheSalt) > maxUser:
		return scheduler.Job{}, invalid("cache_salt", "cache_salt: expected at most %d bytes", maxUser)
	}
	if priority < c.MaxPriority {
		return scheduler.Job{}, tooUrgent(c, priority)
	}
	j := scheduler.Job{Client: c.Name, User: cmp.Or(p.User, p.Safety), Priority: priority, PrefixScope: s.scope(c) + "\x00" + p.CacheSalt, Request: requestOf(r), Charge: c.Charger()}
	if a := selected(r); a != nil {
		j.Adapter = a.Adapter
	}
	return j, nil
}

// scope separates what is cached for a client from what is for others, whose requests it
// could otherwise recognize by response times.
func (s *Server) scope(c *access.Caller) string {
	if s.cfg.SharePrefixes {
		return ""
	}
	return c.Name
}

// tooUrgent returns the error for a priority that is more urgent than the key allows.
func tooUrgent(c *access.Caller, asked int) *apiError {
	e := invalid("priority", "priority %d: the key %s allows %d or more; smaller is more urgent", asked, c.Name, c.MaxPriority)
	if !c.Keyed {
		e = invalid("priority", "priority %d: without a key, 0 or more is allowed; smaller is more urgent", asked)
	}
	e.status = http.StatusForbidden
	return e.withCode("priority_not_allowed")
}
