package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A storage is an array of elements that tensors are views of.
type storage struct {
	dt    tensor.DType
	key   string
	numel int64
}

// A view is a tensor. Element (i, j, …) is at offset + i·stride[0] + … elements
// in the storage.
type view struct {
	storage      *storage
	offset       int64
	size, stride []int64
}

// storageTypes maps torch's storage classes to element types.
var storageTypes = map[string]tensor.DType{
	"FloatStorage": tensor.F32, "HalfStorage": tensor.F16, "BFloat16Storage": tensor.BF16, "DoubleStorage": tensor.F64,
	"CharStorage": tensor.I8, "ShortStorage": tensor.I16, "IntStorage": tensor.I32, "LongStorage": tensor.I64,
	"ByteStorage": tensor.U8, "BoolStorage": tensor.Bool,
}

// pickleCalls implements the globals that may be called.
var pickleCalls = map[global]func(args tuple) (any, error){
	{"collections", "OrderedDict"}:         newOrderedDict,
	{"torch._utils", "_rebuild_tensor"}:    rebuildTensor,
	{"torch._utils", "_rebuild_tensor_v2"}: rebuildTensor,
	{"torch._utils", "_rebuild_parameter"}: rebuildParameter,
	{"torch.nn.parameter", "Parameter"}:    rebuildParameter,
}

// allowed returns all globals that a file may reference.
func (g global) allowed() bool {
	if _, ok := pickleCalls[g]; ok {
		return true
	}
	_, ok := storageTypes[g.name]
	return ok && g.module == "torch"
}

func callGlobal(g global, args tuple) (any, error) {
	f, ok := pickleCalls[g]
	if !ok {
		return nil, errors.New("cannot be called")
	}
	return f(args)
}

func newOrderedDict(args tuple) (any, error) {
	if len(args) != 0 {
		return nil, fmt.Errorf("%d arguments, expected none", len(args))
	}
	return &dict{}, nil
}

// rebuildParameter implements the call with (tensor, requires_grad, hooks).
func rebuildParameter(args tuple) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("missing tensor")
	}
	v, ok := args[0].(*view)
	if !ok {
		return nil, fmt.Errorf("have a %s, want a tensor", kindOf(args[0]))
	}
	return v, nil
}

// rebuildTensor implements the call with (storage, offset, size, stride, …). The
// remaining arguments matter only for training.
func rebuildTensor(args tuple) (any, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("%d arguments, expected a storage, an offset, sizes and strides", len(args))
	}
	st, ok1 := args[0].(*storage)
	offset, ok2 := args[1].(int64)
	size, err1 := integers(args[2])
	stride, err2 := integers(args[3])
	if err := errors.Join(err1, err2); err != nil || !ok1 || !ok2 {
		return nil, fmt.Errorf("arguments %s, %s, %s, %s, expected a storage, an offset, sizes and strides", kindOf(args[0]), kindOf(args[1]), kindOf(args[2]), kindOf(args[3]))
	}
	v := &view{st, offset, size, stride}
	return v, v.check()
}

func integers(v any) ([]int64, error) {
	t, ok := v.(tuple)
	if !ok || len(t) > maxRank {
		return nil, errors.New("not a short tuple of integers")
	}
	out := make([]int64, len(t))
	for i, x := range t {
		n, ok := x.(int64)
		if !ok {
			return nil, errors.New("not a short tuple of integers")
		}
		out[i] = n
	}
	return out, nil
}

// check returns an error unless all elements are inside the storage and their
// number is at most that of the storage (no broadcast views).
func (v *view) check() error {
	if len(v.size) != len(v.stride) {
		return fmt.Errorf("sizes %d and strides %d differ in length", v.size, v.stride)
	}
	if v.offset < 0 || slices.ContainsFunc(v.size, negative) || slices.ContainsFunc(v.stride, negative) {
		return fmt.Errorf("negative sizes %d, strides %d or offset %d", v.size, v.stride, v.offset)
	}
	if slices.Contains(v.size, 0) {
		return nil
	}
	count, last := int64(1), v.offset
	for i, n := range v.size {
		if n > math.MaxInt64/count || v.stride[i] != 0 && n-1 > (math.MaxInt64-last)/v.stride[i] {
			return fmt.Errorf("sizes %d, strides %d and offset %d overflow", v.size, v.stride, v.offset)
		}
		count *= n
		last += (n - 1) * v.stride[i]
	}
	if last >= v.storage.numel || count > v.storage.numel {
		return fmt.Errorf("sizes %d, strides %d and offset %d reach past a storage of %d elements", v.size, v.stride, v.offset, v.storage.numel)
	}
	return nil
}

func negative(n int64) bool { return n < 0 }

// contiguous reports whether the view is contiguous in row-major order.
func (v *view) contiguous() bool {
	next := int64(1)
	for i := len(v.size) - 1; i >= 0; i-- {
		if v.size[i] != 1 && v.stride[i] != next {
			return false
		}
		next *= v.size[i]
	}
	return true
}

// entry returns the entry of a view; at is the file offset of its storage.
func (v *view) entry(m *mapping, name string, at int64) entry {
	size := int64(v.storage.dt.BlockBytes())
	shape, count := make([]int, len(v.size)), int64(1)
	for i, n := range v.size {
		shape[i] = int(n)
		count *= n
	}
	e := entry{file: m, Info: Info{Name: name, DType: v.storage.dt, Shape: shape, File: m.path, Offset: at + v.offset*size, Bytes: count * size}}
	if count == 0 {
		e.Offset, e.Bytes = at, 0
	} else if !v.contiguous() {
		e.collect = func() []byte { return v.gather(m.data[at:], int(count)) }
	}
	return e
}

// gather copies the elements of a strided view in row-major order.
func (v *view) gather(data []byte, count int) []byte {
	size := int64(v.storage.dt.BlockBytes())
	out := make([]byte, 0, int64(count)*size)
	index := make([]int64, len(v.size))
	at := v.offset
	for range count {
		out = append(out, data[at*size:(at+1)*size]...)
		for d := len(index) - 1; d >= 0; d-- {
			index[d]++
			at += v.stride[d]
			if index[d] < v.size[d] {
				break
			}
			at -= index[d] * v.stride[d]
			index[d] = 0
		}
	}
	return out
}
