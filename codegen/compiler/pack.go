package compiler

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// packWeights packs the weights into the cache, unless they are there, and
// returns their path. The key consists of the transforms and the files they
// read.
func packWeights(ctx context.Context, cache *toolchain.Cache, src pack.Source, items []pack.Item, progress func(done, total int64)) (string, error) {
	print, err := checkpoint.Fingerprint(src.Set.Files())
	if err != nil {
		return "", err
	}
	plan, err := json.Marshal(items)
	if err != nil {
		return "", err
	}
	return cache.Make("weights", toolchain.Key("weights 7", print, string(plan), src.Calibration.Digest()), ".weights", func(dir, out string) error {
		return pack.Pack(ctx, src, items, out, pack.Options{Source: print, Progress: progress})
	})
}

// weightsID identifies the contents of a file of packed weights.
func weightsID(path string) (string, error) {
	f, err := packed.Open(path)
	if err != nil {
		return "", err
	}
	return f.ID(), f.Close()
}

// placeFile puts a file of the cache at a path, completely or not at all: by a
// hard link if possible, else by a copy.
func placeFile(from, to string, mode os.FileMode) error {
	tmp := fmt.Sprintf("%s.part-%d", to, os.Getpid())
	os.Remove(tmp)
	defer os.Remove(tmp)
	if os.Link(from, tmp) != nil {
		if err := copyFile(from, tmp, mode); err != nil {
			return err
		}
	}
	return os.Rename(tmp, to)
}

func copyFile(from, to string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := dst.ReadFrom(src); err != nil {
		dst.Close()
		return err
	}
	return dst.Close()
}
