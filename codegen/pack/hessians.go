package pack

import (
	"fmt"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// hessians reads the Hessians of a calibration file on demand, and caches the last few
// factorizations, because consecutive matrices often have the same input.
type hessians struct {
	path   string
	shapes map[string][]int  // of the file's Hessians, by their names in it
	places map[string]string // the name in the file of each matrix' Hessian
	digest string

	mu     sync.Mutex
	recent []namedFeedback
}

type namedFeedback struct {
	stored   string
	feedback *tensor.Feedback
}

// keptFeedbacks is the number of cached factorizations.
const keptFeedbacks = 3

// feedback returns the GPTQ error compensation from the Hessian of a stored matrix of
// cols columns; nil if there is none.
func (h *hessians) feedback(name string, cols int) (*tensor.Feedback, error) {
	stored := h.places[name]
	shape, ok := h.shapes[stored]
	if !ok {
		return nil, nil
	}
	if len(shape) != 4 || shape[2] != calibration.Tile || shape[3] != calibration.Tile || calibration.WidthOf(shape[1]) == 0 {
		return nil, fmt.Errorf("%s: tensor %q of shape %v: expected triangles of %d×%d tiles; calibrate again", h.path, stored, shape, calibration.Tile, calibration.Tile)
	}
	width := calibration.WidthOf(shape[1])
	if parts := shape[0]; parts*width < cols || (parts-1)*width >= cols {
		return nil, nil // the transform's columns are not the stored ones
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.recent {
		if r.stored == stored {
			return r.feedback, nil
		}
	}
	sums, err := h.sums(stored)
	if err != nil {
		return nil, err
	}
	f, err := tensor.NewFeedback(sums, width, cols)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", h.path, stored, err)
	}
	if len(h.recent) == keptFeedbacks {
		h.recent = h.recent[1:]
	}
	h.recent = append(h.recent, namedFeedback{stored, f})
	return f, nil
}

func (h *hessians) sums(stored string) ([]float32, error) {
	set, err := checkpoint.Open(h.path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	return set.Float32(stored)
}

// feedbackOf returns the error compensation for a transform's columns, or nil.
func (e *evaluator) feedbackOf(r *tensor.Transform, cols int) (*tensor.Feedback, error) {
	if e.src.Calibration == nil || e.src.Calibration.hessians == nil {
		return nil, nil
	}
	for _, name := range r.Sources() {
		source, err := tensor.SourceName(name, e.index)
		if err != nil {
			return nil, err
		}
		if f, err := e.src.Calibration.hessians.feedback(source, cols); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}
