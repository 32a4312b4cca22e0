package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ParseProxy parses an address or a CIDR range of trusted proxies.
func ParseProxy(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// Address returns the client address of a request: its peer or, if that is a trusted
// proxy, the last address of X-Forwarded-For, else of Forwarded, that is not a trusted
// proxy. It is invalid if the peer has no IP address.
func (c *Control) Address(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := peer.Addr().Unmap()
	if !c.proxy(at) {
		return at
	}
	hops := listed(r.Header.Values("X-Forwarded-For"))
	if len(hops) == 0 {
		hops = forwarded(r.Header.Values("Forwarded"))
	}
	for _, hop := range slices.Backward(hops) {
		a, ok := hopAddress(hop)
		if !ok { // addresses before an invalid one are not trustworthy
			return at
		}
		if at = a; !c.proxy(at) {
			return at
		}
	}
	return at
}

// Client returns the client address of a request for the log, with the port if the
// client is the peer.
func (c *Control) Client(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if at := c.Address(r); err == nil && at != peer.Addr().Unmap() {
		return at.String()
	}
	return r.RemoteAddr
}

func (c *Control) proxy(a netip.Addr) bool {
	return slices.ContainsFunc(c.opt.Proxies, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// listed returns the elements of a header's comma-separated lists.
func listed(values []string) []string {
	var out []string
	for _, v := range values {
		for e := range strings.SplitSeq(v, ",") {
			if e = strings.TrimSpace(e); e != "" {
				out = append(out, e)
			}
		}
	}
	return out
}

// forwarded returns the "for" values of a Forwarded header (RFC 7239). An element
// without one is the hop "unknown".
func forwarded(values []string) []string {
	var out []string
	for _, e := range listed(values) {
		hop := "unknown"
		for pair := range strings.SplitSeq(e, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(strings.TrimSpace(name), "for") {
				hop = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
		out = append(out, hop)
	}
	return out
}

// hopAddress parses an address with or without brackets and port.
func hopAddress(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Addr().Unmap(), true
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil
}

// groupOf returns the name of the group that an address belongs to: the address itself
// for IPv4, the /64 network for IPv6.
func groupOf(a netip.Addr) string {
	if a.Is6() {
		p, err := a.WithZone("").Prefix(64)
		if err == nil {
			return p.String()
		}
	}
	return a.String()
}

// PeerGroup returns the group of a connection's peer, given as host:port.
func PeerGroup(peer string) string {
	a, err := netip.ParseAddrPort(peer)
	if err != nil {
		return peer
	}
	return groupOf(a.Addr().Unmap())
}
