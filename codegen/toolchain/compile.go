package toolchain

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Unit is a C source file to compile to an object file.
type Unit struct {
	Name    string            // for messages and the object's symbol table: "gemv_q8.c"
	Source  []byte            //
	Headers map[string][]byte // headers that it may include, by name; shared between units
	Flags   []string          // -O3, -march=…, -D…; no paths
}

// A Builder compiles with one compiler into one cache.
type Builder struct {
	Cache *Cache
	CC    *Compiler
	Jobs  int // maximum concurrent compilers; 0: one per CPU

	// Progress, when set, is called as units are finished (cached ones too).
	// Calls do not overlap.
	Progress func(done, total int, name string)
}

// Objects compiles units, several at a time, and returns the object files'
// paths in the units' order. On the first failure, or when ctx ends, the other
// compilers are killed and no partial output remains.
func (b *Builder) Objects(ctx context.Context, units []Unit) ([]string, error) {
	return b.each(ctx, units, b.object)
}

// each calls a function for every unit, several at a time.
func (b *Builder) each(ctx context.Context, units []Unit, one func(context.Context, Unit) (string, error)) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	paths := make([]string, len(units))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(b.jobs(), len(units)) {
		wg.Go(func() {
			for i := range next {
				path, err := one(ctx, units[i])
				if err != nil {
					cancel(err)
					continue
				}
				paths[i] = path
				mu.Lock()
				done++
				if b.Progress != nil {
					b.Progress(done, len(units), units[i].Name)
				}
				mu.Unlock()
			}
		})
	}
	for i := range units {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return paths, nil
}

func (b *Builder) jobs() int {
	if b.Jobs > 0 {
		return b.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// object returns the object file of a unit, from the cache or by compiling it.
func (b *Builder) object(ctx context.Context, u Unit) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return b.Cache.Make("obj", b.unitKey(u), ".o", func(dir, out string) error {
		if err := u.write(dir); err != nil {
			return err
		}
		name := filepath.Base(u.Name)
		// The compiler sees names relative to the private directory only, so
		// the object's bytes do not depend on where the cache lies.
		args := append(slices.Clone(u.Flags), "-I.", "-c", name, "-o", filepath.Base(out))
		if err := b.CC.run(ctx, dir, args...); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("compiling %s: %w", u.Name, err)
		}
		return nil
	})
}

// write writes the unit and its headers to a folder.
func (u *Unit) write(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(u.Name)), u.Source, 0o644); err != nil {
		return err
	}
	for h, text := range u.Headers {
		path := filepath.Join(dir, filepath.FromSlash(h))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// unitKey returns the cache key of a unit's object file.
func (b *Builder) unitKey(u Unit) string {
	parts := []string{"object 1", b.CC.id, filepath.Base(u.Name), strings.Join(u.Flags, "\x00"), string(u.Source)}
	for _, h := range slices.Sorted(maps.Keys(u.Headers)) {
		parts = append(parts, h, string(u.Headers[h]))
	}
	return Key(parts...)
}

// Shared links object files made by Objects into a shared library and returns
// its path. Flags follow the objects (-lm, -lpthread).
func (b *Builder) Shared(ctx context.Context, objects, flags []string) (string, error) {
	parts := []string{"shared 1", b.CC.id, strings.Join(flags, "\x00")}
	for _, o := range objects {
		parts = append(parts, filepath.Base(o)) // the file name contains the hash of the content
	}
	return b.Cache.Make("lib", Key(parts...), sharedExt(), func(dir, out string) error {
		// A response file of names in the private directory: no limit on the
		// command line, and no path of this machine in the library.
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = fmt.Sprintf("%d-%s", i, filepath.Base(o))
			if err := linkOrCopy(o, filepath.Join(dir, names[i])); err != nil {
				return err
			}
		}
		list := []byte(strings.Join(names, "\n") + "\n")
		if err := os.WriteFile(filepath.Join(dir, "objects"), list, 0o644); err != nil {
			return err
		}
		args := append([]string{"-shared", "-o", filepath.Base(out), "@objects"}, flags...)
		if err := b.CC.run(ctx, dir, args...); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("linking %d objects: %w", len(objects), err)
		}
		return nil
	})
}

// sharedExt is the file name extension of shared libraries here.
func sharedExt() string {
	if runtime.GOOS == "darwin" {
		return ".dylib"
	}
	return ".so"
}

// linkOrCopy makes to the same file as from.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return newFile(from, to, 0o644, copyContents)
}
