// Package access says who may ask a service, how urgently, and how much: keys
// with limits, or a group for each client address where no keys are asked for.
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

// Options of a Control.
type Options struct {
	// Load reads the keys, at the start and in each Reload. A nil function: no
	// keys are asked for, and callers are told apart by their addresses.
	Load func() ([]Key, error)

	Limits   Limits            // of callers that have none of their own
	Proxies  []netip.Prefix    // whose headers say where a request comes from
	Registry *metrics.Registry // nil: not measured
	Now      func() time.Time  // nil: time.Now
}

// A Control knows the callers of a service.
type Control struct {
	opt    Options
	secret [sha256.Size]byte // makes tags of keys
	counts *counts

	mu     sync.RWMutex
	tags   map[tag]entry     // what a key's tag stands for
	groups map[string]*group // by name

	addresses addresses
}

// A tag stands for a key in the table of keys. It depends on a secret of the
// process, so that how long a look-up takes says nothing about the keys.
type tag [sha256.Size]byte

type entry struct {
	hash  [sha256.Size]byte
	group *group
}

// New makes a control and loads its keys.
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
	return c, c.Reload()
}

// Open says that no keys are asked for.
func (c *Control) Open() bool { return c.opt.Load == nil }

// Reload reads the keys again. After an error the old ones hold. Requests that
// run go on; a name that stays keeps what it has used of its limits.
func (c *Control) Reload() error {
	if c.Open() {
		return nil
	}
	keys, err := c.opt.Load()
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("there are no keys")
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
		g.set(k.MaxPriority, l, now)
		groups[k.Name] = g
		for _, h := range k.Hashes {
			tags[c.tag(h)] = entry{h, g}
		}
	}
	c.tags, c.groups = tags, groups
	return nil
}

func (c *Control) tag(hash [sha256.Size]byte) (t tag) {
	m := hmac.New(sha256.New, c.secret[:])
	m.Write(hash[:])
	return tag(m.Sum(nil))
}

// find is the group that a key belongs to, nil for none.
func (c *Control) find(key string) *group {
	hash := sha256.Sum256([]byte(key))
	t := c.tag(hash)
	c.mu.RLock()
	e, ok := c.tags[t]
	c.mu.RUnlock()
	if subtle.ConstantTimeCompare(hash[:], e.hash[:]) != 1 || !ok {
		return nil
	}
	return e.group
}

// ErrKey says that a request has no key that is known.
var ErrKey = errors.New("incorrect or missing API key; send it as \"Authorization: Bearer KEY\"")

// A Caller is who sent a request.
type Caller struct {
	Name        string // of the key, or the address
	MaxPriority int    // the most urgent priority that it may ask for
	Keyed       bool   // it has a key

	control *Control
	group   *group
	begun   bool
}

// Identify says who sent a request: the owner of its key or, where no keys are
// asked for, its address.
func (c *Control) Identify(r *http.Request) (*Caller, error) {
	if c.Open() {
		name := groupOf(c.Address(r))
		return &Caller{Name: name, control: c}, nil
	}
	g := c.find(keyOf(r))
	if g == nil {
		c.counts.refused(unknownKey)
		return nil, ErrKey
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Caller{Name: g.name, MaxPriority: g.maxPriority, Keyed: true, control: c, group: g}, nil
}

// keyOf is the key of a request. The name of the scheme has no case (RFC 9110,
// section 11.1).
func keyOf(r *http.Request) string {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return r.Header.Get("X-Api-Key")
}

// Begin admits a request that computes, or says why it has to wait. End must
// follow, whatever it says.
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

// End says that the request has ended.
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

// Charge counts tokens that the caller has used.
func (c *Caller) Charge(tokens int) {
	c.control.counts.tokens(c.label(), tokens)
	if c.group != nil {
		c.group.charge(tokens, c.control.opt.Now())
	}
}

// Quotas are what is left of the caller's limits per minute.
func (c *Caller) Quotas() (requests, tokens Quota) {
	if c.group == nil {
		return Quota{}, Quota{}
	}
	return c.group.quotas(c.control.opt.Now())
}

// label is what metrics call the caller: addresses have one name together, so
// that there are no more names than keys.
func (c *Caller) label() string {
	if c.Keyed {
		return c.Name
	}
	return noKey
}

// addresses are the groups of clients that need no key. A group that has nobody
// running is forgotten when there are too many, the one that was idle longest
// first.
type addresses struct {
	limits Limits
	now    func() time.Time
	most   int

	mu     sync.Mutex
	groups map[string]*address
	idle   list.List // of *address, the latest in front
}

// mostAddresses bounds the memory of addresses: some 6 MB.
const mostAddresses = 16384

type address struct {
	name  string
	group *group
	users int           // requests between enter and leave
	at    *list.Element // in idle; nil while users
}

func (a *addresses) init(l Limits, now func() time.Time) {
	a.limits, a.now, a.most, a.groups = l, now, mostAddresses, map[string]*address{}
}

// enter gives the group of an address and keeps it until leave.
func (a *addresses) enter(name string) *group {
	if a.limits == (Limits{}) {
		return newGroup(name) // nothing to remember
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.groups[name]
	if x == nil {
		x = &address{name: name, group: newGroup(name)}
		x.group.set(0, a.limits, a.now())
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
	for len(a.groups) > a.most && a.idle.Len() > 0 {
		x := a.idle.Remove(a.idle.Back()).(*address)
		delete(a.groups, x.name)
	}
}
