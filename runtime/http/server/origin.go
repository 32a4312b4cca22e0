//go:build unix

package server

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// exposed are the headers of answers that pages of other origins may read.
const exposed = "X-Request-Id, Retry-After, X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, " +
	"X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens"

// cors answers what browsers ask before a request from another origin, and
// lets them read the answer; done: nothing else is to be answered.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !s.permitted(origin) {
		return false
	}
	if slices.Contains(s.cfg.Origins, "*") {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposed)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" || s.foreignHost(r) != nil {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id, X-Stainless-*, "+r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// permitted says whether --cors lets pages of an origin ask.
func (s *Server) permitted(origin string) bool {
	return slices.Contains(s.cfg.Origins, "*") || slices.Contains(s.cfg.Origins, origin)
}

// foreign refuses requests that a browser sends for a page that has no business
// here. A browser sends a POST of a text without asking first, from any page,
// and with the rights that the user's address gives.
func (s *Server) foreign(r *http.Request) *apiError {
	if e := s.foreignHost(r); e != nil {
		return e
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if safe || origin == "" && site != "cross-site" {
		return nil
	}
	// Where there are keys, a page has to send one in a header, which browsers
	// ask about first: without --cors it gets no further.
	if s.cfg.Access.Open() && !s.permitted(origin) && site != "same-origin" && !ownOrigin(origin, r.Host) {
		e := invalid("", "pages of %s may not use this service; its operator can allow it with --cors", quoted(origin)).withCode("foreign_origin")
		e.status = http.StatusForbidden
		return e
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		e := invalid("", "a request from a browser needs the header Content-Type: application/json").withCode("unsupported_media_type")
		e.status = http.StatusUnsupportedMediaType
		return e
	}
	return nil
}

// quoted names an origin in a sentence.
func quoted(origin string) string {
	if origin == "" || origin == "null" {
		return "an unknown origin"
	}
	return origin[:min(len(origin), 100)]
}

// ownOrigin says whether an origin is where the request went to. Schemes may
// differ: a proxy in front may speak HTTPS.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// foreignHost refuses requests under a name that is not the service's, where
// only its own machine may ask and no key is needed: a page's name may come to
// mean 127.0.0.1 after it was loaded (DNS rebinding).
func (s *Server) foreignHost(r *http.Request) *apiError {
	if !s.local && len(s.cfg.Hosts) == 0 || !s.cfg.Access.Open() {
		return nil
	}
	host := hostName(r.Host)
	if loopbackName(host) || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(hostName(h), host) }) {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil && !s.local { // no name, so nobody can change what it means
		return nil
	}
	e := invalid("", "this service does not answer under the name %.100q; its operator can allow it with --allowed-host", host).withCode("foreign_host")
	e.status = http.StatusForbidden
	return e
}

// hostName is a Host header without port, brackets and final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

// loopbackName says whether a name or an address always means the machine
// itself.
func loopbackName(host string) bool {
	host = strings.ToLower(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// loopback says whether a listener can be reached from its own machine alone.
func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
