// Command figures draws the pictures of the README and of docs/ from the product
// and from committed measurements: docs/images/*.svg.
//
//	go generate ./tools/gen/figures              # all of them
//	go run ./tools/gen/figures -o DIR roofline   # some of them
//
// Measurements are in docs/benchmarks/data, each file with the command
// that wrote it: script/record-roofline, script/record-serve, script/pictures,
// script/quality-table --json.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

//go:generate go run ../../simulate/serving --timeline ../../../docs/benchmarks/data/timeline.json
//go:generate go run . -root ../../.. -o ../../../docs/images

// root is the repository's root, as seen from where the command runs.
var root = "."

// A figure is a picture that the command draws.
type figure struct {
	name string
	draw func() ([]byte, error)
}

// figures lists all pictures.
var figures = []figure{
	{"pipeline", pipeline},
	{"serving", serving},
	{"partition", partition},
	{"roofline", roofline},
	{"quality", quality},
	{"throughput", throughput},
	{"bars", bars},
	{"recording", recording},
	{"badge-license", badgeLicense},
	{"badge-go", badgeGo},
	{"badge-conformance", badgeConformance},
}

func main() {
	flag.StringVar(&root, "root", ".", "the repository's root")
	out := flag.String("o", "docs/images", "folder to write to")
	flag.Parse()
	if err := write(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// write draws the figures of these names, or all.
func write(dir string, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(figures, func(f figure) bool { return f.name == name }) {
			return fmt.Errorf("no figure %q", name)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range figures {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		data, err := f.draw()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.name+".svg"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
