package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// listFunctions are the functions of expressions that make lists with an entry for each
// layer, or read lists. The first argument has a value. Other arguments may be lists
// with an entry for each layer.
//
//	each(x, from, to, …)         x, or the characters of a text x, with entries replaced; a last
//	                             argument without a pair replaces all others
//	layers_at(x, yes, no)        yes for the layers in the list x, which ascend, no for the others
//	layers_at(x, yes, no, 1)     the same, with layers counted from 1
//	layers_every(n, yes, no)     yes for every nth layer, no for those before it
//	layers_every(n, yes, no, k)  yes for the layers i with i mod n = k mod n
//	layers_below(n, yes, no)     yes for the first n layers
//	by_layer(x, key, no, other…) the entry key of x's entry for each layer, or no; x has the layers'
//	                             numbers as keys, and its entries have no keys but key and other
//	divided(x, n)                a number x, or each entry of a list x, divided by n and rounded down; a list
//	split(x, sep)                the parts of a text x between separators; a list x itself
//	count(x)                     number of entries of a list or characters of a text
var listFunctions = map[string]func(args []any, config map[string]any) (any, error){
	"each": each, "layers_at": layersAt, "layers_every": layersEvery, "layers_below": layersBelow, "by_layer": byLayer,
	"divided": func(args []any, _ map[string]any) (any, error) {
		list, ok := args[0].([]any)
		if !ok {
			list = args[:1]
		}
		by, _ := number(args[len(args)-1])
		var out []any
		for _, x := range list {
			n, ok := number(x)
			if !ok || by == 0 {
				return nil, fmt.Errorf("%v is no number to divide by %v", x, by)
			}
			out = append(out, math.Floor(n/by))
		}
		return out, nil
	},
	"split": func(args []any, _ map[string]any) (any, error) {
		text, ok := args[0].(string)
		if !ok {
			return args[0], nil
		}
		sep, _ := args[len(args)-1].(string)
		var out []any
		for _, part := range strings.Split(text, sep) {
			out = append(out, strings.TrimSpace(part))
		}
		return out, nil
	},
	"count": func(args []any, _ map[string]any) (any, error) {
		list, err := entries(args[0])
		return float64(len(list)), err
	},
}

// maxLayers is the most entries of a list by layer, far above any real model.
const maxLayers = 1 << 14

// entries returns the entries of a list, or the characters of a text.
func entries(x any) ([]any, error) {
	switch v := x.(type) {
	case []any:
		return v, nil
	case string:
		var out []any
		for _, c := range v {
			out = append(out, string(c))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%v is neither a list nor a text", x)
}

// entry returns entry i of a list, or a value that is no list.
func entry(x any, i int) any {
	list, ok := x.([]any)
	switch {
	case !ok:
		return x
	case i < len(list):
		return list[i]
	}
	return nil
}

func each(args []any, _ map[string]any) (any, error) {
	list, err := entries(args[0])
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, x := range list {
		if out[i] = x; len(args)%2 == 0 {
			out[i] = entry(args[len(args)-1], i)
		}
		for k := 1; k+1 < len(args); k += 2 {
			if sameValue(x, args[k]) {
				out[i] = entry(args[k+1], i)
				break
			}
		}
	}
	return out, nil
}

func layersAt(args []any, config map[string]any) (any, error) {
	list, err := entries(args[0])
	if err != nil {
		return nil, err
	}
	first := 0
	if len(args) > 3 {
		f, _ := number(args[3])
		first = int(f)
	}
	last := -1.0
	for _, x := range list {
		at, ok := number(x)
		if !ok || at <= last {
			return nil, fmt.Errorf("%v: want numbers of layers that ascend", list)
		}
		last = at
	}
	return perLayer(args, config, func(layer int) bool {
		for _, x := range list {
			if sameValue(x, float64(layer+first)) {
				return true
			}
		}
		return false
	})
}

func layersEvery(args []any, config map[string]any) (any, error) {
	n, ok := number(args[0])
	if !ok || n < 1 || n > maxLayers {
		return nil, fmt.Errorf("layers_every(%v): want a number of layers", args[0])
	}
	at := n - 1
	if len(args) > 3 {
		at, _ = number(args[3])
	}
	return perLayer(args, config, func(layer int) bool { return layer%int(n) == int(at)%int(n) })
}

func layersBelow(args []any, config map[string]any) (any, error) {
	n, ok := number(args[0])
	if !ok {
		return nil, fmt.Errorf("layers_below(%v): want a number of layers", args[0])
	}
	return perLayer(args, config, func(layer int) bool { return float64(layer) < n })
}

func byLayer(args []any, config map[string]any) (any, error) {
	layers, ok := args[0].(map[string]any)
	if !ok || len(args) < 3 {
		return nil, fmt.Errorf("by_layer(%v): want a mapping from layers to settings, a key and a value", args[0])
	}
	for layer, settings := range layers {
		entries, ok := settings.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("layer %s: have %v, want settings", layer, settings)
		}
		for key := range entries {
			if !slices.Contains(args[1:2], any(key)) && !slices.Contains(args[3:], any(key)) {
				return nil, fmt.Errorf("layer %s: %s: not supported for single layers", layer, key)
			}
		}
	}
	count, ok := number(config["num_hidden_layers"])
	if !ok || count < 1 || count > maxLayers {
		return nil, nil
	}
	out := make([]any, int(count))
	for i := range out {
		if out[i] = member(layers[strconv.Itoa(i)], args[1].(string)); out[i] == nil {
			out[i] = entry(args[2], i)
		}
	}
	return out, nil
}

// perLayer returns a list with the second or third argument for each layer.
func perLayer(args []any, config map[string]any, yes func(layer int) bool) (any, error) {
	layers, ok := number(config["num_hidden_layers"])
	switch {
	case !ok:
		return nil, nil
	case len(args) < 3 || layers < 1 || layers > maxLayers:
		return nil, fmt.Errorf("a list of %v layers from %d arguments; want at least 3 arguments, and 1 to %d layers", layers, len(args), maxLayers)
	}
	out := make([]any, int(layers))
	for i := range out {
		x := args[2]
		if yes(i) {
			x = args[1]
		}
		out[i] = entry(x, i)
	}
	return out, nil
}

// roundBF16 rounds to the precision of bf16.
func roundBF16(x float64) float64 {
	raw := make([]byte, 2)
	out := make([]float32, 1)
	if err := tensor.Encode(raw, tensor.BF16, []float32{float32(x)}); err != nil || math.IsNaN(x) {
		return x
	}
	if err := tensor.Decode(out, tensor.BF16, raw); err != nil {
		return x
	}
	return float64(out[0])
}
