// Package access authenticates clients by API key and limits their requests. A service
// without keys distinguishes clients by address.
package access

import (
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Options configure a Control.
type Options struct {
	// Load returns the keys; it is called by New and Reload. nil: the service requires
	// no keys, and clients are identified by address.
	Load func() ([]Key, error)

	Limits   Limits            // of clients without limits of their own
	Proxies  []netip.Prefix    // proxies with trusted X-Forwarded-For and Forwarded headers
	Registry *metrics.Registry // nil: no metrics
	Now      func() time.Time  // nil: time.Now
}

// A Control authenticates and limits the clients of a service.
type Control struct {
	opt    Options
	secret [sha256.Size]byte // HMAC key of the tags
	counts *counts

	mu     sync.RWMutex
	tags   map[tag]entry     // keys by tag
	groups map[string]*group // by name

	addresses addresses
}

// A tag identifies a key in the table of keys. It is an HMAC with a secret of the
// process, so that the time of a lookup reveals nothing about the keys.
type tag [sha256.Size]byte

type entry struct {
	hash  [sha256.Size]byte
	group *group
	old   bool // a later key of the name replaces it
}

// New returns a control with its keys loaded.
func New(opt Options) (*Control, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	c := &Control{opt: opt, groups: map[string]*group{}, counts: newCounts(opt.Registry)}
	rand.Read(c.secret[:]) // never fails
	c.addresses.init(opt.Limits, opt.Now)
	if opt.Load == nil {
		return c, nil
	}
	_, err := c.Reload()
	return c, err
}

// Open reports whether the service requires no keys.
func (c *Control) Open() bool { return c.opt.Load == nil }

// A Change counts what a reload changed.
type Change struct{ Keys, Added, Removed int }

// Reload loads the keys again. After an error the old ones remain valid. Running
// requests continue, and a name that is still listed keeps its used quota.
func (c *Control) Reload() (change Change, err error) {
	if c.Open() {
		return change, nil
	}
	keys, err := c.opt.Load()
	if err != nil {
		return change, err
	}
	if len(keys) == 0 {
		return change, errors.New("there are no keys")
	}
	now := c.opt.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	tags, groups := map[tag]entry{}, map[string]*group{}
	for _, k := range keys {
		g := c.groups[k.Name]
		if g == nil {
			g = newGroup(k.Name)
		}
		l := k.Limits
		if l == (Limits{}) {
			l = c.opt.Limits
		}
		g.set(&k, l, now)
		groups[k.Name] = g
		for i, h := range k.Hashes {
			t := c.tag(h)
			tags[t] = entry{h, g, i < len(k.Hashes)-1}
			if _, ok := c.tags[t]; !ok {
				change.Added++
			}
		}
	}
	change.Keys, change.Removed = len(tags), len(c.tags)+change.Added-len(tags)
	c.tags, c.groups = tags, groups
	return change, nil
}

func (c *Control) tag(hash [sha256.Size]byte) (t tag) {
	m := hmac.New(sha256.New, c.secret[:])
	m.Write(hash[:])
	return tag(m.Sum(nil))
}

// find returns the entry of a key; it has no group if there is none.
func (c *Control) find(key string) (e entry) {
	hash := sha256.Sum256([]byte(key))
	t := c.tag(hash)
	c.mu.RLock()
	e, ok := c.tags[t]
	c.mu.RUnlock()
	if subtle.ConstantTimeCompare(hash[:], e.hash[:]) != 1 || !ok {
		return entry{}
	}
	return e
}

// ErrKey is returned for a request without a valid key.
var ErrKey = errors.New("incorrect or missing API key; send it as \"Authorization: Bearer KEY\"")

// A Caller is the client that sent a request.
type Caller struct {
	Name        string // name of the key, or the address
	MaxPriority int    // the most urgent priority that it may request
	Keyed       bool   // identified by a key
	Operator    bool   // may change what the service serves
	MetricsOnly bool   // may read the metrics and nothing else

	control *Control
	group   *group
	begun   bool
}

// Identify returns the client that sent a request, identified by its key or, if the
// service requires none, by its address. The error is ErrKey.
func (c *Control) Identify(r *http.Request) (*Caller, error) {
	if c.Open() {
		name := groupOf(c.Address(r))
		return &Caller{Name: name, control: c}, nil
	}
	e := c.find(keyOf(r))
	g := e.group
	if g == nil {
		c.counts.refused(unknownKey)
		return nil, ErrKey
	}
	if e.old {
		c.counts.old(g.name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Caller{Name: g.name, MaxPriority: g.maxPriority, Keyed: true, Operator: g.operator, MetricsOnly: g.metricsOnly, control: c, group: g}, nil
}

// keyOf returns the API key of a request. The authentication scheme is case-insensitive
// (RFC 9110, section 11.1).
func keyOf(r *http.Request) string {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return r.Header.Get("X-Api-Key")
}

// Begin admits a request that uses the model, or returns a refusal. The caller must
// call End in either case.
func (c *Caller) Begin() *Refusal {
	if c.group == nil {
		c.group = c.control.addresses.enter(c.Name)
	}
	who := "this address"
	if c.Keyed {
		who = "the key " + c.Name
	}
	if r := c.group.begin(who, c.control.opt.Now()); r != nil {
		c.control.counts.refused(c.label())
		return r
	}
	c.begun = true
	c.control.counts.requests(c.label())
	return nil
}

// End marks the end of the request.
func (c *Caller) End() {
	if c.begun {
		c.begun = false
		c.group.end()
	}
	if !c.Keyed && c.group != nil {
		c.control.addresses.leave(c.Name, c.group)
		c.group = nil
	}
}

// Charger returns the function that counts tokens for the client and subtracts them from
// its quota. It may be called concurrently, and after End.
func (c *Caller) Charger() func(tokens int) {
	control, g, label := c.control, c.group, c.label()
	if control == nil { // no client: it computes nothing
		return nil
	}
	return func(tokens int) {
		control.counts.tokens(label, tokens)
		if g != nil {
			g.charge(tokens, control.opt.Now())
		}
	}
}

// Quotas returns the state of the client's limits per minute.
func (c *Caller) Quotas() (requests, tokens Quota) {
	if c.group == nil {
		return Quota{}, Quota{}
	}
	return c.group.quotas(c.control.opt.Now())
}

// label returns the client's label in metrics. All addresses share one label, which
// bounds the number of labels.
func (c *Caller) label() string {
	if c.Keyed {
		return c.Name
	}
	return noKey
}

// addresses are the groups of clients without keys. Beyond max groups, those without
// running requests are evicted in LRU order.
type addresses struct {
	limits Limits
	now    func() time.Time
	max    int

	mu     sync.Mutex
	groups map[string]*address
	idle   list.List // of *address, most recently used first
}

// maxAddresses bounds the memory of addresses to about 6 MB.
const maxAddresses = 16384

type address struct {
	name  string
	group *group
	users int           // requests between enter and leave
	at    *list.Element // in idle; nil while users > 0
}

func (a *addresses) init(l Limits, now func() time.Time) {
	a.limits, a.now, a.max, a.groups = l, now, maxAddresses, map[string]*address{}
}

// enter returns the group of an address, which is not evicted before leave.
func (a *addresses) enter(name string) *group {
	if a.limits == (Limits{}) {
		return newGroup(name) // no state to keep
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.groups[name]
	if x == nil {
		x = &address{name: name, group: newGroup(name)}
		x.group.set(&Key{}, a.limits, a.now())
		a.groups[name] = x
	}
	if x.at != nil {
		a.idle.Remove(x.at)
		x.at = nil
	}
	x.users++
	a.shrink()
	return x.group
}

func (a *addresses) leave(name string, g *group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.groups[name]
	if x == nil || x.group != g {
		return
	}
	x.users--
	if x.users == 0 {
		x.at = a.idle.PushFront(x)
		a.shrink()
	}
}

func (a *addresses) shrink() {
	for len(a.groups) > a.max && a.idle.Len() > 0 {
		x := a.idle.Remove(a.idle.Back()).(*address)
		delete(a.groups, x.name)
	}
}
