package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/bytesize"
	"gopkg.in/yaml.v3"
)

// A Budget is what the weights may cost, in place of a type: one of its fields is set.
// The compiler chooses the type of each matrix.
type Budget struct {
	Bits  float64 // per weight, on average
	Bytes int64   // of the weights file
	Loss  float64 // the largest expected perplexity increase, as a fraction
	Fit   bool    // the memory of this machine
}

// IsZero reports whether there is no budget.
func (b Budget) IsZero() bool { return b == Budget{} }

func (b Budget) String() string {
	switch {
	case b.Bits > 0:
		return strconv.FormatFloat(b.Bits, 'g', -1, 64)
	case b.Bytes > 0:
		return fmt.Sprintf("%dB", b.Bytes)
	case b.Loss > 0:
		return fmt.Sprintf("loss=%g%%", 100*b.Loss)
	case b.Fit:
		return "fit"
	}
	return ""
}

// budgetForms describes the forms that ParseBudget accepts.
const budgetForms = "4.5 (bits per weight, on average), 3GB (of the weights file), fit (this machine's memory), or loss=1% (perplexity)"

// Bounds of a budget, which exceed what any model can use.
const (
	maxBudgetBits  = 32
	maxBudgetBytes = 1e15
)

var (
	bitsForm  = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,6})?$`)
	bytesForm = regexp.MustCompile(`^[0-9]{1,16}(\.[0-9]{1,6})? ?([kmgt]i?)?b$`)
	lossForm  = regexp.MustCompile(`^loss=([0-9]{1,4}(?:\.[0-9]{1,6})?)(%?)$`)
)

// ParseBudget parses a budget. ok is false if s does not have the form of one.
func ParseBudget(s string) (b Budget, ok bool, err error) {
	s = strings.ToLower(strings.TrimSpace(s))
	number := func(text string) float64 {
		x, _ := strconv.ParseFloat(text, 64) // the forms bound its digits
		return x
	}
	if s == "fit" {
		return Budget{Fit: true}, true, nil
	}
	if bitsForm.MatchString(s) {
		b.Bits = number(s)
		if b.Bits < 1 || b.Bits > maxBudgetBits {
			err = &Error{What: fmt.Sprintf("have %s bits per weight, want 1 to %d; a budget is %s", s, maxBudgetBits, budgetForms)}
		}
		return b, true, err
	}
	if bytesForm.MatchString(s) {
		n, err := bytesize.Parse(s)
		if err != nil || n < 1 || n > maxBudgetBytes {
			return b, true, &Error{What: fmt.Sprintf("have %s, want 1 B to 1000 TB", s)}
		}
		b.Bytes = n
		return b, true, nil
	}
	if m := lossForm.FindStringSubmatch(s); m != nil {
		b.Loss = number(m[1])
		if m[2] == "%" {
			b.Loss /= 100
		}
		if !(b.Loss > 0 && b.Loss <= 1) {
			err = &Error{What: fmt.Sprintf("have %s, want a perplexity increase above 0 and at most 100%%, such as loss=1%%", s)}
		}
		return b, true, err
	}
	return b, false, nil
}

// setQuant sets a size, a type or a budget for all matrices.
func (s *Spec) setQuant(text string) error {
	b, ok, err := ParseBudget(text)
	if err != nil {
		return err
	}
	if ok {
		s.Quant, s.Budget = 0, b
		return nil
	}
	t, err := ParseType(text)
	if err != nil {
		return &Error{What: err.Error() + "; or a budget: " + budgetForms}
	}
	s.Quant, s.Budget = t, Budget{}
	return nil
}

// takeBudget sets the budget if `quant` has one, and returns the other keys and values of the
// model spec.
func (s *Spec) takeBudget(d *decoder, keys []*yaml.Node) (rest []*yaml.Node, err error) {
	for i := 0; i+1 < len(keys); i += 2 {
		value := deref(keys[i+1])
		if keys[i].Value == "quant" && value.Kind == yaml.ScalarNode && s.Budget.IsZero() {
			b, ok, err := ParseBudget(value.Value)
			if err != nil {
				return nil, errAt(d.pos(value), "quant: %v", err)
			}
			if ok {
				s.Budget, s.set["quant"] = b, d.pos(keys[i])
				continue
			}
		}
		rest = append(rest, keys[i], keys[i+1])
	}
	return rest, nil
}
