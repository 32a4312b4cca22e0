//go:build !unix

// Command iflowc does not run on this system.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "iflowc: runs on Linux and macOS only; on Windows, install it in WSL2 (wsl --install), which is Linux")
	os.Exit(2)
}
