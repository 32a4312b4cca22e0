package compiler

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// outputs are the files of a build. All are complete before the first one gets its name,
// so that an error, such as a full disk, leaves what was there before.
type outputs struct {
	cache *toolchain.Cache
	link  bool // the outputs are in the cache themselves: as links
	files []output
}

type output struct{ part, name string }

// add adds a file of the cache; see toolchain.Cache.Export.
func (o *outputs) add(from, name string, mode fs.FileMode, move bool) error {
	if from == name {
		return nil
	}
	part := o.begin(name)
	if o.link && os.Link(from, part) == nil {
		return nil
	}
	return o.cache.Export(from, part, mode, move)
}

// write adds a file with the given contents.
func (o *outputs) write(name string, data []byte, mode fs.FileMode) error {
	return os.WriteFile(o.begin(name), data, mode)
}

// begin returns the path of a file until it is complete.
func (o *outputs) begin(name string) string {
	part := fmt.Sprintf("%s.part-%d", name, os.Getpid())
	os.Remove(part)
	o.files = append(o.files, output{part, name})
	return part
}

// commit gives the files their names.
func (o *outputs) commit() error {
	for _, f := range o.files {
		if err := os.Rename(f.part, f.name); err != nil {
			return err
		}
		os.Remove(f.part) // it stays if both were links to one file
	}
	o.files = nil
	return nil
}

// discard removes files without names.
func (o *outputs) discard() {
	for _, f := range o.files {
		os.Remove(f.part)
	}
}
