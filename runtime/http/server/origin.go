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

	"github.com/iflowc/iflowc/runtime/kit/loopback"
)

// exposed lists the response headers that pages of other origins may read.
const exposed = "X-Request-Id, Retry-After, X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, " +
	"X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens, " + warningHeader

// cors answers preflight requests and sets the CORS headers; done reports whether the
// response is complete.
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
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id, X-Stainless-*, "+r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// permitted reports whether --cors allows an origin.
func (s *Server) permitted(origin string) bool {
	return slices.Contains(s.cfg.Origins, "*") || slices.Contains(s.cfg.Origins, origin)
}

// foreign refuses requests from pages of origins that are not permitted. Browsers send
// simple POST requests from any page without a preflight, with the access rights of the
// user's address.
func (s *Server) foreign(r *http.Request) *apiError {
	if e := s.foreignHost(r); e != nil {
		return e
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if safe || origin == "" && site != "cross-site" {
		return nil
	}
	// With keys, a page must send the key in a header, which requires a preflight, so
	// it needs --cors anyway.
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

// quoted returns an origin for an error message.
func quoted(origin string) string {
	if origin == "" || origin == "null" {
		return "an unknown origin"
	}
	return origin[:min(len(origin), 100)]
}

// ownOrigin reports whether an origin is the host that the request was sent to. Schemes
// may differ, because a proxy may terminate TLS.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// foreignHost refuses requests for a host name that is not the service's, if the
// service is on a loopback address or Hosts is set, and needs no key. It prevents DNS
// rebinding, where a page's name resolves to 127.0.0.1 after it was loaded.
func (s *Server) foreignHost(r *http.Request) *apiError {
	if !s.local && len(s.cfg.Hosts) == 0 || !s.cfg.Access.Open() {
		return nil
	}
	if r.Host == "" && r.URL.Path == "/health" { // a load balancer's check by HTTP/1.0; browsers send a name
		return nil
	}
	host := loopback.HostName(r.Host)
	if loopback.Host(host) || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(loopback.HostName(h), host) }) {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil && !s.local { // an address cannot be rebound
		return nil
	}
	e := invalid("", "this service does not answer under the name %.100q; its operator can allow it with --allowed-host", host).withCode("foreign_host")
	e.status = http.StatusForbidden
	return e
}

// onLoopback reports whether a listener is reachable only from the local machine.
func onLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
