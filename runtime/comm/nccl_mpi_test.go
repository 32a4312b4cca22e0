//go:build unix

package comm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/build"
	"github.com/iflowc/iflowc/runtime/load"
)

// envNCCL makes the test program a rank that joins a job on GPUs; its value is
// the library with the transports.
const envNCCL = "IFLOWC_TEST_NCCL"

// TestNCCLByMPI: the ranks of an MPI job have the id that rank 0 made, and join
// up to what the machine has. It needs libnccl.so.2, an MPI with mpirun, and a C
// compiler.
func TestNCCLByMPI(t *testing.T) {
	t.Parallel()
	if _, err := OpenNCCL(""); err != nil {
		t.Skip("no libnccl.so.2 on this machine")
	}
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun: install OpenMPI or MPICH (openmpi-bin, mpich)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, mpirun, "-n", "2", self, "-test.run=^TestNCCLRank$", "-test.v")
	c.Env = append(os.Environ(), envNCCL+"="+transports(t), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ids := map[string]int{}
	for line := range strings.Lines(string(out)) {
		if _, id, ok := strings.Cut(strings.TrimSpace(line), "the job is "); ok {
			ids[id]++
		}
	}
	if len(ids) != 1 {
		t.Errorf("the ranks have the ids %v, expected one\n%s", ids, out)
	}
	for _, n := range ids {
		if n != 2 {
			t.Errorf("%d ranks have an id, expected two\n%s", n, out)
		}
	}
}

// TestNCCLRank is a rank of TestNCCLByMPI, and nothing else.
func TestNCCLRank(t *testing.T) {
	path := os.Getenv(envNCCL)
	if path == "" {
		return
	}
	launch, ok := Launched()
	if !ok {
		t.Fatal("no launcher")
	}
	w, err := JoinMPI(launch)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	lib, err := load.OpenFile("portable", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Open(lib, Place{Rank: int32(w.Rank), Ranks: 2, First: int32(w.Rank), Members: 1}, true, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	n, err := OpenNCCL("")
	if err != nil {
		t.Fatal(err)
	}
	var id NCCLID
	w.Do(func() { id, err = w.ncclID(n) })
	if err != nil || id == (NCCLID{}) {
		t.Fatalf("id %x, %v", id, err)
	}
	fmt.Printf("\nthe job is %x\n", id)
	var ring *Ring
	w.Do(func() { ring, err = w.JoinNCCL(n) })
	if err == nil {
		ring.Close()
	} else if !strings.Contains(strings.ToLower(err.Error()), "cuda") {
		t.Error(err)
	}
	var flushed error
	w.Do(func() { flushed = w.Flush() })
	if flushed != nil {
		t.Error(flushed)
	}
}

// transports compiles the C of the transports beside a rank that computes little.
func transports(t *testing.T) string {
	t.Helper()
	cc, err := build.FindCompiler(t.Context(), "")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	cache, err := build.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &build.Builder{Cache: cache, CC: cc}
	headers := map[string][]byte{}
	list, err := filepath.Glob("../../templates/include/*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		headers[filepath.Base(h)] = read(t, h)
	}
	var units []build.Unit
	for _, name := range []string{"../partition/testdata/rank.c", "../../templates/comm/endpoint.c", "../../templates/comm/threads.c", "../../templates/comm/mpi.c"} {
		units = append(units, build.Unit{Name: filepath.Base(name), Source: read(t, name), Headers: headers, Flags: []string{"-O1", "-fPIC"}})
	}
	objects, err := b.Objects(t.Context(), units)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := b.Shared(t.Context(), objects, []string{"-lm", "-lpthread"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ranks.so")
	if err := os.WriteFile(path, read(t, lib), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
