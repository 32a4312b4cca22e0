//go:build unix

package main

import (
	"context"
	"os/exec"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// mpiLibraries are the names that implementations of MPI give their library.
var mpiLibraries = []struct{ file, name string }{
	{"libmpi.so.40", "OpenMPI"},
	{"libmpich.so.12", "MPICH"},
	{"libmpi.so.12", "MPICH"},
}

// mpiPackages are the commands that install one.
var mpiPackages = []struct{ program, install string }{
	{"apt-get", "sudo apt-get install -y openmpi-bin libopenmpi-dev"},
	{"dnf", "sudo dnf install -y openmpi"},
	{"yum", "sudo yum install -y openmpi"},
	{"zypper", "sudo zypper install -y openmpi"},
	{"pacman", "sudo pacman -S --noconfirm openmpi"},
	{"apk", "sudo apk add openmpi"},
	{"brew", "brew install open-mpi"},
}

// lookMPI looks for an MPI library, for models in several processes.
func lookMPI(ctx context.Context) []finding {
	var libraries []string
	for _, l := range mpiLibraries {
		if loadable(l.file) != "" {
			libraries = append(libraries, l.name+" ("+l.file+")")
		}
	}
	remedy := "install OpenMPI or MPICH"
	for _, p := range mpiPackages {
		if _, err := exec.LookPath(p.program); err == nil {
			remedy = p.install
			break
		}
	}
	if len(libraries) == 0 {
		return []finding{{State: findingAbsent, What: "MPI", Detail: "only a model in several processes needs it: no library is found", Remedy: remedy}}
	}
	found := []finding{{State: findingOK, What: "MPI", Detail: strings.Join(libraries, ", ")}}
	for _, launcher := range []string{"mpirun", "mpiexec"} {
		path, err := exec.LookPath(launcher)
		if err != nil {
			continue
		}
		out, _ := exec.CommandContext(ctx, path, "--version").Output()
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return append(found, finding{State: findingOK, What: launcher, Detail: strings.TrimSpace(path + ": " + first)})
	}
	return append(found, finding{State: findingAbsent, What: "mpirun", Detail: "a library of MPI is here, but nothing that launches processes", Remedy: remedy})
}

// loadable returns the name under which the system's loader finds a shared
// library; "" if it finds none.
func loadable(file string) string {
	if runtime.GOOS == "darwin" {
		stem, _, _ := strings.Cut(file, ".so")
		file = stem + ".dylib"
	}
	handle, err := purego.Dlopen(file, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return ""
	}
	_ = purego.Dlclose(handle)
	return file
}
