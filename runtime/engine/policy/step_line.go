package policy

import "time"

// A line estimates the duration of a step of n tokens as a + b·n, fitted to the last
// steps by weighted least squares with decaying weights.
type line struct {
	w, n, nn, t, nt float64 // sums of weights, tokens, tokens², seconds, tokens·seconds
}

// measure adds a step. Its duration is clipped at outlier times the estimate, because
// the rest is time lost to other processes.
func (l *line) measure(tokens int, d time.Duration) {
	n, t := float64(tokens), d.Seconds()
	if l.w > minSamples {
		fixed, perToken := l.estimate()
		t = min(t, outlier*(fixed+perToken*n))
	}
	l.w = l.w*decay + 1
	l.n = l.n*decay + n
	l.nn = l.nn*decay + n*n
	l.t = l.t*decay + t
	l.nt = l.nt*decay + n*t
}

// estimate returns the seconds per step and the seconds per token. If all steps had
// about the same size, the slope is unknown; then all time is attributed to the tokens,
// which errs toward shorter steps.
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
