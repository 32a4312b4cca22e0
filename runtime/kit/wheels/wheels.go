// Package wheels finds files of Python packages, such as the CUDA libraries that PyPI
// distributes, without running Python.
package wheels

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Find returns the files that match patterns relative to a folder of installed packages,
// such as "nvidia/cublas/lib/libcublasLt.so.12". It searches the active environment, the
// folder .cuda, the user's packages, and those of the python3 on the path, in this order.
func Find(patterns ...string) (files []string) {
	for _, root := range roots() {
		for _, pattern := range patterns {
			for _, packages := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages"} { // the latter are Debian's
				found, err := filepath.Glob(filepath.Join(root, packages, pattern))
				if err == nil {
					files = append(files, found...)
				}
			}
		}
	}
	return files
}

// roots lists the folders that may have packages under lib.
func roots() (dirs []string) {
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if env := os.Getenv(v); env != "" {
			dirs = append(dirs, env)
		}
	}
	dirs = append(dirs, ".cuda")
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".local"))
	}
	return append(dirs, prefixes()...)
}

// prefixes returns where the python3 on the path is installed. In an environment, python3
// is a link to the system's, which comes second.
func prefixes() (dirs []string) {
	program, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	dirs = []string{filepath.Dir(filepath.Dir(program))}
	if target, err := filepath.EvalSymlinks(program); err == nil {
		if dir := filepath.Dir(filepath.Dir(target)); dir != dirs[0] {
			dirs = append(dirs, dir)
		}
	}
	if dirs[len(dirs)-1] == "/usr" {
		dirs = append(dirs, "/usr/local") // where Debian's pip installs
	}
	return dirs
}
