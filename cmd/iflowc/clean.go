//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/kit/bytesize"
)

type cleanCmd struct {
	To     *bytesize.Size `help:"Maximum size of the cache; removes least-recently-used entries beyond it." placeholder:"20G"`
	Unused time.Duration  `help:"Remove only entries that were not used for this long." placeholder:"168h"`
	DryRun bool           `short:"n" help:"Print the cache's size and remove nothing."`
}

// Run removes entries from the build cache.
func (c *cleanCmd) Run() error {
	limit, unused := int64(-1), c.Unused
	if c.To != nil {
		limit = int64(*c.To)
		if unused == 0 {
			unused = toolchain.Never
		}
	}
	if unused < 0 {
		return usageError{fmt.Errorf("--unused %v: expected a positive time, such as 168h for a week", unused)}
	}
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return err
	}
	defer cache.Close()
	if !c.DryRun {
		freed, err := cache.Evict(limit, unused)
		if err != nil {
			return err
		}
		fmt.Printf("removed %s\n", compiler.SizeText(freed))
	}
	usage, err := cache.Usage()
	if err != nil {
		return err
	}
	bound, err := cache.Bound()
	if err != nil {
		return usageError{err}
	}
	fmt.Printf("%s holds %s\n", cache.Dir, usageText(usage, bound))
	return nil
}

// Help shows how to keep some entries.
func (cleanCmd) Help() string {
	return `The cache bounds itself: after a compile, least-recently-used entries are removed until it is below a tenth of the
disk, at most 20 GB. IFLOWC_CACHE_SIZE sets another bound (50G; 0: none). Pulled models stay.

Examples:

  iflowc clean                                removes all entries
  iflowc clean --unused 168h                  entries that were not used for a week
  iflowc clean --to 5G                        least-recently-used entries, down to 5 GB`
}
