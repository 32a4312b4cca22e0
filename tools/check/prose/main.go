// Command prose checks the project's text: retired.yaml lists phrases that were
// replaced by the field's terms, and no sentence may be longer than 45 words.
//
//	go run ./tools/check/prose            every file of the repository
//	go run ./tools/check/prose docs spec  these files and folders
//
// It reads Markdown, the comments and string literals of Go files outside tests,
// and all text of templates, scripts and web pages. Code blocks are left out.
// Tables and string literals may hold sentences of any length.
package main

import (
	"fmt"
	"os"
)

func main() {
	found, err := check(".", os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		fmt.Fprintf(os.Stderr, "%d findings\n", len(found))
		os.Exit(1)
	}
}
