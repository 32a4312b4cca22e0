package compiler

import (
	"context"
	"encoding/json"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// packWeights packs the weights into the cache, unless they are there, and
// returns their path. The key consists of the transforms and the files they
// read. A file with the same key at path own, where an earlier compile put it, serves if it
// is not damaged.
func packWeights(ctx context.Context, cache *toolchain.Cache, src pack.Source, items []pack.Item, own string, progress func(done, total int64)) (string, error) {
	print, err := checkpoint.Fingerprint(src.Set.Files())
	if err != nil {
		return "", err
	}
	plan, err := json.Marshal(items)
	if err != nil {
		return "", err
	}
	key := toolchain.Key("weights 9", print, string(plan), src.Calibration.Digest())
	if !toolchain.Sealed(cache.Path("weights", key, ".weights")) && holds(ctx, own, print, key) {
		return own, nil
	}
	return cache.Make("weights", key, ".weights", func(dir, out string) error {
		return pack.Pack(ctx, src, items, out, pack.Options{Source: packed.Source(print, key), Progress: progress})
	})
}

// holds reports whether a file consists of the weights with a fingerprint and a key,
// undamaged.
func holds(ctx context.Context, path, print, key string) bool {
	if path == "" {
		return false
	}
	f, err := packed.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Made(print, key) && f.Verify(ctx, func(int64) {}) == nil
}

// weightsID identifies the contents of a file of packed weights.
func weightsID(path string) (string, error) {
	f, err := packed.Open(path)
	if err != nil {
		return "", err
	}
	return f.ID(), f.Close()
}
