// Command archdoc draws docs/architecture.svg from the table of package groups
// in tools/check/archtest.
package main

import (
	"flag"
	"fmt"
	"os"
)

//go:generate go run . -o ../../../docs/architecture.svg

func main() {
	out := flag.String("o", "docs/architecture.svg", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(draw()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "archdoc:", err)
		os.Exit(1)
	}
}
