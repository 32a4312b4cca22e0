//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A divergence compares the model with a reference on the scored tokens. KL is the mean
// of Σ p·log(p/q) over the vocabulary, in nats, with the reference's probabilities p.
type divergence struct {
	Reference string   `json:"reference"`
	KL        interval `json:"kl"`
	SameTop   interval `json:"same_top"` // fraction of tokens with the same most probable token
	Ratio     interval `json:"perplexity_ratio"`
}

// An interval is a mean and its 95 % confidence interval, computed from the windows'
// means, because tokens of one window are not independent. With a single window it is
// computed from the tokens.
type interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (i interval) String() string { return fmt.Sprintf("%.4g (%.4g to %.4g)", i.Mean, i.Low, i.High) }

// A clustered adds up values by window.
type clustered struct {
	sums, n []float64
	squares float64
}

func (c *clustered) window() { c.sums, c.n = append(c.sums, 0), append(c.n, 0) }

func (c *clustered) add(x float64) {
	c.sums[len(c.sums)-1] += x
	c.n[len(c.n)-1]++
	c.squares += x * x
}

// interval applies f to the mean and to the ends of its interval.
func (c *clustered) interval(f func(float64) float64) interval {
	sum, n := 0.0, 0.0
	for i, s := range c.sums {
		sum, n = sum+s, n+c.n[i]
	}
	mean, square := sum/n, 0.0
	for i, s := range c.sums {
		d := s - mean*c.n[i]
		square += d * d
	}
	w := float64(len(c.sums))
	if w == 1 { // its tokens instead
		square, w = max(0, c.squares-n*mean*mean), n
	}
	half := 1.96 * math.Sqrt(square*w/max(1, w-1)) / n
	return interval{f(mean), f(mean - half), f(mean + half)}
}

// A reference is another binary of the model, which runs the same windows and sends the
// logits of each scored token.
type reference struct {
	name   string
	cmd    *exec.Cmd
	out    *bufio.Reader
	err    bytes.Buffer
	rows   []float32
	bytes  []byte
	kl     clustered
	top    clustered
	longer clustered // difference of the losses
}

// logitsHead is the line before the logits, with the size of the vocabulary.
const logitsHead = "logits of %d tokens\n"

// startReference starts the binary with the settings of c.
func (c *perplexityCmd) startReference(ctx context.Context) (*reference, error) {
	path, err := exec.LookPath(c.Against)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return nil, wrong(fmt.Errorf("--against %s: %w", c.Against, err))
	}
	number := strconv.Itoa
	args := []string{"perplexity", c.File, "--logits", "--context=" + number(c.Context), "--stride=" + number(c.Stride), "--protocol=" + c.Protocol, "--chunks=" + number(c.Chunks)}
	if c.Threads > 0 {
		args = append(args, "--threads="+number(c.Threads))
	}
	r := &reference{name: filepath.Base(path), cmd: exec.CommandContext(ctx, path, args...)}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.cmd.Stderr, r.out = &r.err, bufio.NewReaderSize(out, 1<<20)
	if err := r.cmd.Start(); err != nil {
		return nil, wrong(fmt.Errorf("--against %s: %w", c.Against, err))
	}
	return r, nil
}

// head reads the first line.
func (r *reference) head(vocab int) error {
	var n int
	if _, err := fmt.Fscanf(r.out, logitsHead, &n); err != nil {
		return r.failed(err)
	}
	if n != vocab {
		return wrong(fmt.Errorf("--against %s: its vocabulary has %d tokens, this one's %d", r.name, n, vocab))
	}
	return nil
}

// read returns the next n rows.
func (r *reference) read(n, vocab int) ([]float32, error) {
	if len(r.rows) < n*vocab {
		r.rows, r.bytes = make([]float32, n*vocab), make([]byte, 4*n*vocab)
	}
	b := r.bytes[:4*n*vocab]
	if _, err := io.ReadFull(r.out, b); err != nil {
		return nil, r.failed(err)
	}
	rows := r.rows[:n*vocab]
	for i := range rows {
		rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return rows, nil
}

// failed explains an error with the last line that the binary printed.
func (r *reference) failed(err error) error {
	r.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(r.err.String()), "\n")
	return fmt.Errorf("--against %s: %w: %s", r.name, err, lines[len(lines)-1])
}

// stop ends the binary if it still runs.
func (r *reference) stop() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

func (r *reference) window() {
	for _, c := range []*clustered{&r.kl, &r.top, &r.longer} {
		c.window()
	}
}

func (r *reference) add(t tokenScore) {
	r.kl.add(t.kl)
	r.longer.add(t.longer)
	if t.same {
		r.top.add(1)
	} else {
		r.top.add(0)
	}
}

// result summarizes the comparison.
func (r *reference) result() *divergence {
	same := func(x float64) float64 { return x }
	return &divergence{Reference: r.name, KL: r.kl.interval(same), SameTop: r.top.interval(same), Ratio: r.longer.interval(math.Exp)}
}

// compare returns the loss of the token by the logits of the model and of the reference,
// the KL divergence, and whether both have their largest logit at the same token.
func compare(own, ref []float32, token int32) (loss, refLoss, kl float64, same bool) {
	sum, top, at := normalize(own)
	refSum, refTop, refAt := normalize(ref)
	shift, refShift := math.Log(sum)+float64(top), math.Log(refSum)+float64(refTop)
	return shift - float64(own[token]), refShift - float64(ref[token]), klDivergence(ref, refShift, own, shift), at == refAt
}

// klDivergence returns Σ p·(log p − log q), where log p and log q are the logits ref and own
// less their shifts.
func klDivergence(ref []float32, refShift float64, own []float32, shift float64) (kl float64) {
	for i, l := range ref {
		logP := float64(l) - refShift
		kl += math.Exp(logP) * (logP - (float64(own[i]) - shift))
	}
	return kl
}

// writeLogits writes rows of logits as the reader of --against expects them.
func writeLogits(w io.Writer, logits []float32) error {
	b := make([]byte, 4*len(logits))
	for i, l := range logits {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(l))
	}
	_, err := w.Write(b)
	return err
}
