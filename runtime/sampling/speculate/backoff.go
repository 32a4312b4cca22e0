package speculate

// naps keep a drafter of heads still where it does not pay, for a longer time
// each time.
type naps struct {
	nap    int // steps of the next rest
	asleep int // steps left of this one
	idle   int // steps in a row in which nothing paid
}

func newNaps() naps { return naps{nap: medusaNap} }

// sleeps counts a step and says whether it is one of a rest. Where steps cost
// nothing nobody rests.
func (n *naps) sleeps(priced bool) bool {
	if !priced {
		n.asleep = 0
	}
	if n.asleep == 0 {
		return false
	}
	n.asleep--
	return true
}

// tire counts a step in which nothing paid; after a few in a row it is time to
// rest.
func (n *naps) tire() {
	if n.idle++; n.idle < medusaRetree {
		return
	}
	n.idle, n.asleep = 0, n.nap
	n.nap = min(2*n.nap, medusaSleep)
}

// pays counts a step with a draft.
func (n *naps) pays() { n.idle, n.nap = 0, medusaNap }
