package passes

import (
	"fmt"
	"strings"
)

// Pipeline lists all passes, in order.
var Pipeline = []*Pass{
	Partition,        // first: it fixes N and K, on which all later choices depend
	ExpandSlices,     // before quantize, which then rounds each slice
	Quantize,         // before merging: only projections of one type can be merged
	MergeProjections, // before fusing: a merged matmul has one epilogue
	AddAdapters,      // after merging, which joins matmuls by what reads them
	FuseRegions,      // fixes the regions, which kernels implement
	SelectKernels,    // by the shape and type of each region's root
	PlanBuffers,      // last: lifetimes depend on regions
}

// order lists required orders of passes; a test checks Pipeline.
var order = []struct{ before, after, why string }{
	{"partition", "quantize", "a shard's columns must be whole blocks of its type"},
	{"expand-slices", "quantize", "the outliers of a rounded row are those of one matmul"},
	{"quantize", "merge-projections", "projections of different types cannot share a matmul"},
	{"merge-projections", "fuse-regions", "a merged matmul has one tail"},
	{"merge-projections", "add-adapters", "merging follows a matmul's result to what reads it"},
	{"add-adapters", "fuse-regions", "adapters join the epilogue of their matmul"},
	{"fuse-regions", "select-kernels", "kernels implement regions"},
	{"fuse-regions", "plan-buffers", "values inside a region need no buffer"},
}

// Named returns the named passes, in the given order.
func Named(names []string) ([]*Pass, error) {
	var out []*Pass
	for _, n := range names {
		p := Lookup(n)
		if p == nil {
			return nil, fmt.Errorf("unknown pass %q (have: %s)", n, strings.Join(Names(), ", "))
		}
		out = append(out, p)
	}
	return out, nil
}

// Lookup returns the pass of a name, or nil.
func Lookup(name string) *Pass {
	for _, p := range Pipeline {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Names returns the names of all passes, in order.
func Names() []string {
	var out []string
	for _, p := range Pipeline {
		out = append(out, p.Name)
	}
	return out
}
