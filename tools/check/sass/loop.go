package sass

import (
	"regexp"
	"slices"
	"strings"
)

// A Loop is what a thread does with weights in a kernel's main loop.
type Loop struct {
	Instructions int     // of an iteration
	Bytes        int     // of weights that an iteration loads
	InFlight     float64 // bytes of weights under way when the loop waits for some
	Opening      int     // bytes of weights under way when the loop begins
	Outer        int     // further instructions of an iteration of the loop around it; 0: none
	Ops          map[string]int
}

// MainLoop returns the innermost loop that loads the most weights, and false if there is
// none. Weights are read without allocation in L1 (NA), or else by cp.async.
func (k *Kernel) MainLoop() (Loop, bool) {
	weights := func(i Instruction) int {
		if strings.HasPrefix(i.Op, "LDG.") && strings.Contains(i.Op, ".NA.") {
			return width(i.Op)
		}
		return 0
	}
	loops := k.loops()
	if k.total(loops, weights) == 0 {
		weights = func(i Instruction) int {
			if strings.HasPrefix(i.Op, "LDGSTS") {
				return width(i.Op)
			}
			return 0
		}
	}
	best, most := [2]int{-1, -1}, 0
	for _, l := range loops {
		n := k.bytes(l, weights)
		if n > most && !slices.ContainsFunc(loops, func(o [2]int) bool { return inside(o, l) && k.bytes(o, weights) > 0 }) {
			best, most = l, n
		}
	}
	if most == 0 {
		return Loop{}, false
	}
	body := k.Code[best[0] : best[1]+1]
	out := Loop{Instructions: len(body), Bytes: most, Ops: map[string]int{}}
	out.InFlight, out.Opening = inFlight(body, weights)
	for _, i := range body {
		op, _, _ := strings.Cut(i.Op, ".")
		out.Ops[op]++
	}
	for _, l := range loops { // the closest loop around it
		if n := l[1] - l[0] + 1 - len(body); inside(best, l) && (out.Outer == 0 || n < out.Outer) {
			out.Outer = n
		}
	}
	return out, true
}

// TensorLoop returns the number of tensor-core instructions and of all instructions of
// the smallest loop with the most of the former.
func (k *Kernel) TensorLoop() (mma, all int) {
	for _, l := range k.loops() {
		n, size := 0, l[1]-l[0]+1
		for _, i := range k.Code[l[0] : l[1]+1] {
			if strings.HasPrefix(i.Op, "HMMA") || strings.HasPrefix(i.Op, "HGMMA") {
				n++
			}
		}
		if n > mma || n == mma && size < all {
			mma, all = n, size
		}
	}
	return mma, all
}

var target = regexp.MustCompile(`(?:^|\s)(0x[0-9a-f]+)$`)

// loops returns the first and last instructions of every loop: of every branch to a
// lower address.
func (k *Kernel) loops() (list [][2]int) {
	index := map[int]int{}
	for n, i := range k.Code {
		index[i.At] = n
		m := target.FindStringSubmatch(i.Operands)
		if !strings.HasPrefix(i.Op, "BRA") || m == nil {
			continue
		}
		if first, back := index[number(m[1][2:], 16)]; back && first < n {
			list = append(list, [2]int{first, n})
		}
	}
	return list
}

func inside(a, b [2]int) bool { return a != b && a[0] >= b[0] && a[1] <= b[1] }

func (k *Kernel) bytes(loop [2]int, weights func(Instruction) int) (n int) {
	for _, i := range k.Code[loop[0] : loop[1]+1] {
		n += weights(i)
	}
	return n
}

func (k *Kernel) total(loops [][2]int, weights func(Instruction) int) (n int) {
	for _, l := range loops {
		n += k.bytes(l, weights)
	}
	return n
}

// width returns the bytes that a load moves per thread.
func width(op string) int {
	switch {
	case strings.Contains(op, ".128"):
		return 16
	case strings.Contains(op, ".64"):
		return 8
	case strings.Contains(op, "16"):
		return 2
	}
	return 4
}

// inFlight returns the bytes of weights under way when a loop waits for some, and when it
// begins. The former is, for loads into registers, the mean over their first uses, and
// for cp.async what its waits leave pending, and the group that they wait for.
func inFlight(body []Instruction, weights func(Instruction) int) (waiting float64, opening int) {
	type load struct{ from, use, bytes int }
	var loads []load
	for n, i := range body {
		if bytes := weights(i); bytes > 0 && !strings.HasPrefix(i.Op, "LDGSTS") {
			loads = append(loads, load{n, firstUse(body, n, bytes/4), bytes})
		}
	}
	if len(loads) == 0 {
		waiting = pending(body, weights)
		return waiting, int(waiting)
	}
	sum := 0
	for _, l := range loads { // wait for l
		if l.use <= l.from {
			opening += l.bytes
		}
		for _, o := range loads {
			if under(l.use, o.from, o.use) {
				sum += o.bytes
			}
		}
	}
	return float64(sum) / float64(len(loads)), opening
}

// under reports whether a load that is issued at from and used at use, possibly in the
// next iteration, is under way at a place of the loop.
func under(at, from, use int) bool {
	if from < use {
		return from < at && at <= use
	}
	return from < at || at <= use
}

var register = regexp.MustCompile(`\bR(\d+)\b`)

// firstUse returns the place of the first instruction after n, around the loop, that
// reads one of the registers that the load at n writes.
func firstUse(body []Instruction, n, words int) int {
	first := number(register.FindStringSubmatch(body[n].Operands)[1], 10)
	for d := 1; d <= len(body); d++ {
		at := (n + d) % len(body)
		i := body[at]
		_, sources, _ := strings.Cut(i.Operands, ",")
		if strings.HasPrefix(i.Op, "ST") || i.Op == "BRA" {
			sources = i.Operands
		}
		for _, m := range register.FindAllStringSubmatch(sources, -1) {
			if r := number(m[1], 10); r >= first && r < first+max(words, 1) {
				return at
			}
		}
	}
	return n
}

var pendingGroups = regexp.MustCompile(`SB0,\s*0x([0-9a-f]+)`)

func pending(body []Instruction, weights func(Instruction) int) float64 {
	bytes, groups, left := 0, 0, 0
	for _, i := range body {
		bytes += weights(i)
		if i.Op == "LDGDEPBAR" {
			groups++
		}
		if m := pendingGroups.FindStringSubmatch(i.Operands); m != nil && strings.HasPrefix(i.Op, "DEPBAR") {
			left = max(left, number(m[1], 16))
		}
	}
	if groups == 0 {
		return 0
	}
	return float64(left+1) * float64(bytes) / float64(groups)
}
