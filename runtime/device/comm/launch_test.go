//go:build unix

package comm

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
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
		got, ok := launched(func(name string) string { return c.env[name] })
		got.libraries = nil
		if ok != c.ok || got.Name != c.want.Name || got.Ranks != c.want.Ranks || got.Local != c.want.Local || got.At != c.want.At {
			t.Errorf("%v: %+v %v, expected %+v %v", c.env, got, ok, c.want, c.ok)
		}
	}
}

// TestLibraries checks that a library that the user names is the only one tried.
func TestLibraries(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PMI_SIZE": "2", "PMI_RANK": "1", "IFLOWC_MPI": "/no/such/file.so"}
	l, _ := launched(func(name string) string { return env[name] })
	if len(l.libraries) != 1 || l.libraries[0] != env["IFLOWC_MPI"] {
		t.Errorf("%v", l.libraries)
	}
	if _, err := JoinMPI(l); err == nil {
		t.Error("a missing library was loaded")
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
