// Package loopback recognizes requests to the local machine. A service on a loopback address
// that needs no key answers only those: the name of a page that a browser has loaded may
// resolve to 127.0.0.1 later (DNS rebinding).
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// HostName returns a Host header without port, brackets and final dot.
func HostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

// Host reports whether a Host header always names the local machine.
func Host(host string) bool {
	host = strings.ToLower(HostName(host))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
