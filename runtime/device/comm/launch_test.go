//go:build unix

package comm

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLaunched checks the Launch for each launcher's variables.
func TestLaunched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want Launch
		ok   bool
	}{
		{map[string]string{}, Launch{}, false},
		{map[string]string{"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, Launch{}, false},
		{map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, Launch{Name: "OpenMPI", Ranks: 4, Local: 2, At: 1}, true},
		{map[string]string{"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"}, Launch{Name: "MPICH", Ranks: 2, Local: 2, At: 1}, true},
		{map[string]string{"PMI_SIZE": "2", "PMI_RANK": "1"}, Launch{Name: "MPICH", Ranks: 2, At: -1}, true},
		{map[string]string{"SLURM_STEP_NUM_TASKS": "8", "PMIX_RANK": "5", "SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_LOCALID": "1"}, Launch{Name: "Slurm", Ranks: 8, Local: 4, At: 1}, true},
		{map[string]string{"SLURM_STEP_NUM_TASKS": "8"}, Launch{}, false},
	} {
		got, ok, err := launched(func(name string) string { return c.env[name] })
		if err != nil || ok != c.ok || got.Name != c.want.Name || got.Ranks != c.want.Ranks || got.Local != c.want.Local || got.At != c.want.At {
			t.Errorf("%v: %+v %v, expected %+v %v", c.env, got, ok, c.want, c.ok)
		}
	}
}

// TestLauncherNonsense checks that variables of a launcher that make no sense are an error
// that names them, rather than a model that every process runs alone.
func TestLauncherNonsense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, rank, fd string }{
		{"2x", "0", ""}, {"99999999999999999999", "0", ""}, {"-3", "0", ""}, {"0", "0", ""}, {"2", "abc", ""}, {"2", "2", ""}, {"2", "-1", ""}, {"65537", "0", ""},
		{"2", "0", "x"}, {"2", "0", "-1"}, {"2", "0", "1000000"},
	} {
		_, ok, err := launched(func(name string) string {
			return map[string]string{"PMI_SIZE": c.size, "PMI_RANK": c.rank, "PMI_FD": c.fd}[name]
		})
		if ok || err == nil || !strings.Contains(err.Error(), "unset PMI_RANK") {
			t.Errorf("%v: %v, %v", c, ok, err)
		}
	}
	for _, env := range []map[string]string{
		{"RANK": "0", "WORLD_SIZE": "65537", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
		{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": strings.Repeat("a", 256), "MASTER_PORT": "1"}, {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "65535"},
		{"RANK": strings.Repeat("9", 1000), "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
	} {
		if _, ok, err := torchrun(func(name string) string { return env[name] }); ok || err == nil || !strings.Contains(err.Error(), "unset RANK") || len(err.Error()) > 600 {
			t.Errorf("%v: %v, %v", env, ok, err)
		}
	}
}

// FuzzLaunch checks that no values of a launcher's variables make a job of impossible ranks.
func FuzzLaunch(f *testing.F) {
	f.Add("2", "1", "2", "1", "7", "29500")
	f.Add("4(x2)", "-1", "65536", "99999999999999999999", "", "x")
	f.Fuzz(func(t *testing.T, size, rank, local, at, fd, port string) {
		env := map[string]string{"PMI_FD": fd, "RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": local, "LOCAL_RANK": at, "MASTER_ADDR": fd, "MASTER_PORT": port}
		for _, l := range launchers {
			env[l.size], env[l.rank], env[l.local], env[l.at] = size, rank, local, at
		}
		for _, parse := range []func(func(string) string) (Launch, bool, error){launched, torchrun} {
			l, ok, err := parse(func(name string) string { return env[name] })
			if ok && (err != nil || l.Ranks < 1 || l.Ranks > maxRanks || l.Rank < 0 || l.Rank >= l.Ranks || l.Local < 0 || l.At >= l.Local) {
				t.Errorf("%q %q %q %q: %+v, %v", size, rank, local, at, l, err)
			}
		}
	})
}

// TestLibraries checks that a library that the user names is the only one tried.
func TestLibraries(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PMI_SIZE": "2", "PMI_RANK": "1", "IFLOWC_MPI": "/no/such/file.so"}
	l, _, _ := launched(func(name string) string { return env[name] })
	if len(l.libraries) != 1 || l.libraries[0] != env["IFLOWC_MPI"] {
		t.Errorf("%v", l.libraries)
	}
	if _, err := JoinMPI(t.Context(), l, nil); err == nil {
		t.Error("a missing library was loaded")
	}
	env["IFLOWC_MPI"] = filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(env["IFLOWC_MPI"], 0o600); err != nil {
		t.Fatal(err)
	}
	l, _, _ = launched(func(name string) string { return env[name] })
	if _, err := JoinMPI(t.Context(), l, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe as the library: %v", err)
	}
}

// TestSupervised checks that the context ends when the parent changes and not before,
// and that the watcher ends with the context.
func TestSupervised(t *testing.T) {
	t.Parallel()
	var parent, looks atomic.Int32
	parent.Store(7)
	seen := make(chan struct{})
	watch := func() int {
		if looks.Add(1) == 10 {
			close(seen)
		}
		return int(parent.Load())
	}
	ctx := supervised(t.Context(), watch, time.Millisecond)
	<-seen
	if ctx.Err() != nil {
		t.Error("the context ended while the parent was alive")
	}
	parent.Store(1)
	<-ctx.Done()
	outer, end := context.WithCancel(t.Context())
	inner := supervised(outer, watch, time.Hour)
	end()
	<-inner.Done()
}
