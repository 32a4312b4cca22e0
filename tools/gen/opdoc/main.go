// Command opdoc writes docs/ops.md from the table of ops.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/ir/ops"
)

func main() {
	out := flag.String("o", "docs/ops.md", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(ops.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "opdoc:", err)
		os.Exit(1)
	}
}
