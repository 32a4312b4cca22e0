package grammar

import (
	"fmt"
	"slices"
)

// finish checks the network and returns the Grammar with the start rule root.
func (b *builder) finish(root int32) (*Grammar, error) {
	if b.err != nil {
		return nil, b.err
	}
	for _, r := range b.rules {
		if !r.defined {
			return nil, fmt.Errorf("rule %s is used but not defined", r.name)
		}
	}
	b.findProductive()
	if !b.rules[root].productive {
		return nil, fmt.Errorf("the grammar matches no text: rule %s never ends", b.rules[root].name)
	}
	b.findCallees()
	b.findNullable()
	if err := b.refuseLeftRecursion(); err != nil {
		return nil, err
	}
	b.markTails()
	return newGrammar(b, root), nil
}

// findProductive finds the rules that match some text, and removes all transitions to
// states from which the end of their rule is unreachable.
func (b *builder) findProductive() {
	alive := make([]bool, len(b.states))
	back := b.predecessors()
	callers := make([][]int32, len(b.rules)) // states that call each rule
	for s := range b.states {
		for _, c := range b.states[s].calls {
			callers[c.rule] = append(callers[c.rule], int32(s))
		}
	}
	owner := make(map[int32]int32, len(b.rules)) // start state → rule
	var work []int32
	revive := func(s int32) {
		if !alive[s] {
			alive[s] = true
			work = append(work, s)
		}
	}
	for i, r := range b.rules {
		b.rules[i].productive = false
		owner[r.start] = int32(i)
		revive(r.end)
	}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range back[s] {
			if !alive[p] && b.leads(p, s) {
				revive(p)
			}
		}
		r, isStart := owner[s]
		if !isStart || b.rules[r].productive {
			continue
		}
		b.rules[r].productive = true
		for _, p := range callers[r] {
			for _, c := range b.states[p].calls {
				if c.rule == r && alive[c.ret] {
					revive(p)
				}
			}
		}
	}
	for s := range b.states {
		st := &b.states[s]
		st.eps = slices.DeleteFunc(st.eps, func(t int32) bool { return !alive[t] })
		st.edges = slices.DeleteFunc(st.edges, func(e edge) bool { return !alive[e.to] })
		st.calls = slices.DeleteFunc(st.calls, func(c call) bool { return !alive[c.ret] || !b.rules[c.rule].productive })
	}
}

// predecessors lists for every state the states that lead to it by a byte, an eps
// transition or the return of a call.
func (b *builder) predecessors() [][]int32 {
	back := make([][]int32, len(b.states))
	for s := range b.states {
		st := &b.states[s]
		for _, t := range st.eps {
			back[t] = append(back[t], int32(s))
		}
		for _, e := range st.edges {
			back[e.to] = append(back[e.to], int32(s))
		}
		for _, c := range st.calls {
			back[c.ret] = append(back[c.ret], int32(s))
		}
	}
	return back
}

// leads reports whether some text leads from p to s, given the productive rules found
// so far.
func (b *builder) leads(p, s int32) bool {
	st := &b.states[p]
	return slices.Contains(st.eps, s) ||
		slices.ContainsFunc(st.edges, func(e edge) bool { return e.to == s }) ||
		slices.ContainsFunc(st.calls, func(c call) bool { return c.ret == s && b.rules[c.rule].productive })
}

// reach lists the states reachable from s by the empty text, including s and through
// calls of nullable rules.
func (b *builder) reach(s int32) []int32 {
	seen := map[int32]bool{s: true}
	list := []int32{s}
	for i := 0; i < len(list); i++ {
		if b.steps++; b.steps > maxSteps {
			b.fail(fmt.Errorf("%w: its analysis takes more than %d steps", ErrTooLarge, maxSteps))
			return list
		}
		st := &b.states[list[i]]
		next := slices.Clone(st.eps)
		for _, c := range st.calls {
			if b.rules[c.rule].nullable {
				next = append(next, c.ret)
			}
		}
		for _, t := range next {
			if !seen[t] {
				seen[t] = true
				list = append(list, t)
			}
		}
	}
	return list
}

// findCallees lists the rules that each rule calls.
func (b *builder) findCallees() {
	b.callees = make([][]int32, len(b.rules))
	seen := make([]int32, len(b.states)) // rule + 1 that listed the state
	for i, r := range b.rules {
		list := []int32{r.start}
		for len(list) > 0 {
			s := list[len(list)-1]
			list = list[:len(list)-1]
			if seen[s] != 0 {
				continue
			}
			seen[s] = int32(i) + 1
			st := &b.states[s]
			list = append(list, st.eps...)
			for _, e := range st.edges {
				list = append(list, e.to)
			}
			for _, c := range st.calls {
				b.callees[i] = append(b.callees[i], c.rule)
				list = append(list, c.ret)
			}
		}
	}
}

// findNullable finds the rules that match the empty text. It checks a rule again when a
// rule that it calls turns out to be nullable.
func (b *builder) findNullable() {
	callers := make([][]int32, len(b.rules))
	for i := range b.rules {
		for _, callee := range b.callees[i] {
			callers[callee] = append(callers[callee], int32(i))
		}
	}
	work := make([]int32, len(b.rules))
	for i := range work {
		work[i] = int32(len(work) - 1 - i) // rules defined last are called first
	}
	for len(work) > 0 && b.err == nil {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		r := &b.rules[i]
		if !r.nullable && slices.Contains(b.reach(r.start), r.end) {
			r.nullable = true
			work = append(work, callers[i]...)
		}
	}
}

// refuseLeftRecursion returns an error if a rule can call itself before it consumes a
// byte: the calls would never end.
func (b *builder) refuseLeftRecursion() error {
	const fresh, open, done = 0, 1, 2
	mark := make([]uint8, len(b.rules))
	first := make([][]int32, len(b.rules)) // rules called before any byte
	for i := range b.rules {
		for _, s := range b.reach(b.rules[i].start) {
			for _, c := range b.states[s].calls {
				first[i] = append(first[i], c.rule)
			}
		}
	}
	if b.err != nil {
		return b.err
	}
	type frame struct{ rule, next int32 }
	for i := range b.rules {
		if mark[i] != fresh {
			continue
		}
		mark[i] = open
		stack := []frame{{rule: int32(i)}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if int(top.next) == len(first[top.rule]) {
				mark[top.rule] = done
				stack = stack[:len(stack)-1]
				continue
			}
			callee := first[top.rule][top.next]
			top.next++
			switch mark[callee] {
			case open:
				return fmt.Errorf("rule %s is left-recursive; write it as a repetition, such as a ::= b (op b)*", b.rules[callee].name)
			case fresh:
				mark[callee] = open
				stack = append(stack, frame{rule: callee})
			}
		}
	}
	return nil
}

// markTails marks the states from which the rule can only end, without consuming
// another byte. A call that would return there returns to its caller's caller
// instead (tail call elimination), so right-recursive lists need no memory per element.
func (b *builder) markTails() {
	for s := range b.states {
		b.states[s].tail = b.isTail(int32(s))
	}
}

func (b *builder) isTail(s int32) bool {
	list := append(make([]int32, 0, 8), s)
	ends := false
	for i := 0; i < len(list); i++ {
		st := &b.states[list[i]]
		if len(st.edges) > 0 || len(st.calls) > 0 {
			return false
		}
		ends = ends || st.final
		for _, t := range st.eps {
			if slices.Contains(list, t) {
				continue
			}
			if len(list) == cap(list) {
				return false
			}
			list = append(list, t)
		}
	}
	return ends
}
