package policy

import "time"

// A line estimates how long a step of n tokens takes as a + b·n, fitted to the
// last steps by least squares with decaying weights.
type line struct {
	w, n, nn, t, nt float64 // sums of weights, tokens, tokens², seconds, tokens·seconds
}

// measure takes a step into account. One that takes unusually long, because
// something else ran meanwhile, counts as outlier times its size.
func (l *line) measure(tokens int, d time.Duration) {
	n, t := float64(tokens), d.Seconds()
	if l.w > enough {
		fixed, perToken := l.estimate()
		t = min(t, outlier*(fixed+perToken*n))
	}
	l.w = l.w*memory + 1
	l.n = l.n*memory + n
	l.nn = l.nn*memory + n*n
	l.t = l.t*memory + t
	l.nt = l.nt*memory + n*t
}

// estimate gives seconds of any step and seconds more for each token. Steps of
// one size say nothing of the slope; then all time counts as the tokens', which
// errs on the side of shorter steps.
func (l *line) estimate() (fixed, perToken float64) {
	if l.n == 0 {
		return 0, 0
	}
	spread := l.w*l.nn - l.n*l.n
	if spread > 1e-3*l.nn*l.w {
		perToken = (l.w*l.nt - l.n*l.t) / spread
		fixed = (l.t - perToken*l.n) / l.w
	}
	if perToken <= 0 || fixed < 0 {
		return 0, l.t / l.n
	}
	return fixed, perToken
}
