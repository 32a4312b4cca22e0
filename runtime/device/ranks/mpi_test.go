//go:build unix

package ranks_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// Environment variables that make this test program act as a rank.
const (
	envLibrary = "IFLOWC_TEST_LIBRARY" // file of the fake model; set: act as a rank
	envGroups  = "IFLOWC_TEST_GROUPS"  // TP ranks of each stage: "2,2"
	envFault   = "IFLOWC_TEST_FAULT"   // "dies 1", "hangs 1", "sick 1", "hash 1", "weights 1", "aborts 1", "quits 1", "apart 1"
)

func TestMain(m *testing.M) {
	if os.Getenv(envLibrary) == "" {
		os.Exit(irtest.Run(m))
	}
	job, err := rank()
	if err == nil && job.Left() {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "rank says: %v\n", err)
	time.Sleep(time.Second / 2) // the launcher kills all ranks when the first one exits
	if job != nil && !job.Left() {
		job.Abort(7)
	}
	os.Exit(1)
}

// rank acts as one process of a job.
func rank() (*ranks.Job, error) {
	fault, which, _ := strings.Cut(os.Getenv(envFault), " ")
	bad, _ := strconv.Atoi(which)
	if fault == "apart" { // as if each rank had a machine
		os.Setenv("MPI_LOCALNRANKS", "1")
		os.Setenv("MPI_LOCALRANKID", "0")
	}
	launch, ok, launchErr := comm.Launched()
	groups, err := groupsOf(os.Getenv(envGroups))
	if err = cmp.Or(launchErr, err); !ok || err != nil {
		return nil, fmt.Errorf("not started by a launcher, or by no test: %v", err)
	}
	p := newProgram(nil, os.Getenv(envLibrary), groups...).withCells()
	job, err := ranks.Join(context.Background(), p, launch, nil)
	if err != nil {
		return job, err
	}
	switch fault {
	case "dies":
		p.fault, p.how = bad, 1
	case "hangs":
		p.fault, p.how = bad, 2
	case "sick":
		p.fault, p.how = bad, 3
	case "weights":
		p.source[bad] = "others"
	case "hash":
		if job.Rank() == bad {
			p.hash = "other"
		}
	case "quits": // while the job is idle, and the launcher asks the others to end
		if job.Rank() == bad {
			os.Exit(1)
		}
		job.ShortenTimeout()
		return job, job.Leave(nil)
	case "aborts":
		if job.Rank() == bad {
			job.Abort(7)
		}
		select {} // only Abort ends the job
	}
	if job.Leads() {
		err = runLeader(job, p, fault)
	} else {
		err = job.Work()
	}
	left := os.Getenv(envLibrary) + ".left"
	if fault == "apart" && job.Rank() == bad && err == nil {
		err = awaitFile(left)
	}
	if e := job.Leave(err); err == nil {
		err = e
	}
	if fault == "apart" && job.Leads() && err == nil {
		err = os.WriteFile(left, nil, 0o600)
	}
	return job, err
}

// awaitFile waits until rank 0 has left, which it must not do for this rank. With another
// transport than UCX it does.
func awaitFile(name string) error {
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || !bytes.Contains(maps, []byte("libucp")) {
		fmt.Println("MPICH does not use UCX")
		return nil
	}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
	}
	return errors.New("rank 0 waits for this one to leave")
}

// groupsOf parses envGroups.
func groupsOf(text string) (groups []int, err error) {
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		groups = append(groups, n)
	}
	return groups, nil
}

// runLeader runs queries of each kind, also to check that a model can be opened again.
func runLeader(job *ranks.Job, p *program, fault string) error {
	for kind := range 4 {
		if err := runQueries(job, p, fault, kind); err != nil {
			return err
		}
	}
	fmt.Println("all is well")
	return nil
}

func runQueries(job *ranks.Job, p *program, fault string, kind int) error {
	patience := time.Minute // a slow, loaded machine must not count as a fault
	if fault == "hangs" || fault == "dies" {
		patience = 5 * time.Second
	}
	list, err := sampled(p, kind)
	if err != nil {
		return err
	}
	if slices.Contains([]string{"dies", "hangs", "sick"}, fault) {
		list[0].prompt = []int32{57}
	}
	d, err := job.Leader(ranks.Settings{Threads: 1 + kind, Timeout: patience})
	if err != nil {
		return err
	}
	eng, err := open(p, d, engine.Options{Threads: 1, MaxSeqs: 5, MaxTokens: 64, Draft: 9})
	if err != nil {
		return err
	}
	defer eng.Close()
	if err = generate(eng, list); err == nil {
		err = compare(p, list)
	}
	if err == nil {
		err = checkReceived(p, list, d.Counts()[0], kind, eng.Stats().Steps)
	}
	return err
}

// sampled returns queries with different samplers, some of which draft. Rank 0 samples all of
// them if kind is 0, some if it is 1, none if it is 2. If it is 3, there is only one, with a
// prompt of several steps, most of which have no output rows.
func sampled(p *program, kind int) ([]*query, error) {
	list := queries(uint64(kind), 5)
	if kind == 3 {
		list = list[:1]
		list[0].prompt = append(list[0].prompt, slices.Repeat([]int32{5, 9}, 100)...)
	}
	for i, o := range []decode.Options{
		{}, {Temperature: 20, TopK: 5}, {Temperature: 30, TopP: 0.9, MinP: 0.05, Seed: 7}, {}, {Temperature: 15, Seed: 3},
	} {
		if i == len(list) {
			break
		}
		q := list[i]
		q.set.Options, q.reads = o, kind == 0 || kind == 1 && i%2 == 1
		if i < 2 {
			continue
		}
		var err error
		if q.guess, err = p.continuation(q); err != nil {
			return nil, err
		}
		for j := 4; j < len(q.guess); j += 7 { // some drafts are wrong
			q.guess[j] = (q.guess[j] + 1) % vocab
		}
	}
	return list, nil
}

// checkReceived checks the bytes of results: of all rows of logits, or of all chosen tokens.
func checkReceived(p *program, list []*query, c ranks.Counts, kind int, steps int64) error {
	rows := int64(0)
	for _, q := range list {
		rows += int64(q.rows)
	}
	least, most := 4*(cols+1)*rows, 4*(cols+1)*rows
	switch {
	case p.manifest.Partition.Output() == 0:
		least, most = 0, 0
	case kind == 1:
		least = 4 * rows
	case kind > 1:
		least, most = 4*rows, 4*rows
	}
	if most > 0 {
		most += 4 * steps // those without output rows
	}
	if c.Received < least || c.Received > most || c.Commanded <= 0 {
		return fmt.Errorf("received %d bytes of results, expected %d to %d; sent %d of steps", c.Received, least, most, c.Commanded)
	}
	return nil
}

// A launcher is an installed MPI launcher.
type launcher struct{ name, run string }

// launchers returns the launchers of this machine.
func launchers(t *testing.T) (list []launcher) {
	t.Helper()
	for _, l := range []launcher{{"OpenMPI", "mpirun.openmpi"}, {"MPICH", "mpirun.mpich"}} {
		if path, err := exec.LookPath(l.run); err == nil {
			list = append(list, launcher{l.name, path})
		}
	}
	if path, err := exec.LookPath("mpirun"); err == nil && len(list) == 0 {
		list = append(list, launcher{"mpirun", path})
	}
	if len(list) == 0 {
		t.Skip("no mpirun: install OpenMPI or MPICH (openmpi-bin, mpich)")
	}
	return list
}

// launch starts a job of this test program, with front before each rank's command, and
// returns its combined output.
func (l launcher) launch(t *testing.T, lib, groups string, ranks int, fault string, front ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	session, err := os.MkdirTemp("", "mpi") // Open MPI's sessions share a folder, which one may make while another removes it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(session)
	args := append([]string{"-n", strconv.Itoa(ranks)}, append(front, self)...)
	c := exec.CommandContext(ctx, l.run, args...)
	c.Env = append(os.Environ(), envLibrary+"="+lib, envGroups+"="+groups, envFault+"="+fault,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none", "OMPI_MCA_orte_tmpdir_base="+session,
		"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestMPI checks that a job of processes computes the expected tokens, and that the
// others report the number of a rank that dies, hangs or runs another program.
func TestMPI(t *testing.T) {
	t.Parallel()
	lib := library(t)
	all := launchers(t)
	for i, c := range []struct {
		groups string
		ranks  int
		fault  string
		want   string
	}{
		{"2", 2, "", "all is well"},
		{"1,1", 2, "", "all is well"},
		{"2,2", 4, "", "all is well"},
		{"2", 2, "hangs 1", "rank 1 of the model does not respond"},
		{"1,1,1", 3, "hangs 1", "rank 1 of the model does not respond"},
		{"1,1", 2, "sick 1", decode.ErrNaN.Error()},
		{"2", 2, "hash 1", "rank 1 of the model: it runs a different program"},
		{"2", 2, "weights 1", "rank 1 of the model: its weights were made from different files"},
	} {
		some := all
		if c.fault != "" { // launchers take seconds to end a job, so spread the faults over them
			some = all[i%len(all):][:1]
		}
		for _, l := range some {
			t.Run(fmt.Sprint(l.name, " ", c.groups, " ", c.fault), func(t *testing.T) {
				t.Parallel()
				out, err := l.launch(t, lib, c.groups, c.ranks, c.fault)
				if !strings.Contains(out, c.want) || (err == nil) != (c.fault == "") {
					t.Errorf("%v, said\n%s\nexpected %q", err, out, c.want)
				}
			})
		}
	}
}

// TestAbort checks that Abort ends ranks that would run on, and that the launcher returns
// its status.
func TestAbort(t *testing.T) {
	t.Parallel()
	lib := library(t)
	for _, l := range launchers(t) {
		for _, rank := range []int{0, 1} {
			t.Run(fmt.Sprint(l.name, " ", rank), func(t *testing.T) {
				t.Parallel()
				out, err := l.launch(t, lib, "2", 2, fmt.Sprint("aborts ", rank))
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 7 {
					t.Errorf("%v, said\n%s\nexpected status 7", err, out)
				}
			})
		}
	}
}

// TestLeaveApart checks that a job that spans machines ends in order under MPICH: no rank
// waits for another that runs on.
func TestLeaveApart(t *testing.T) {
	t.Parallel()
	lib := library(t)
	for _, l := range launchers(t) {
		if l.name == "MPICH" {
			out, err := l.launch(t, lib, "1,1", 2, "apart 1")
			if err != nil || !strings.Contains(out, "all is well") {
				t.Errorf("%v, said\n%s", err, out)
			}
			if strings.Contains(out, "does not use UCX") {
				t.Skip(out)
			}
		}
	}
}

// TestMPIDeath checks the report of a dead rank under MPICH. MPICH kills the ranks
// beside a dead one, except those in a session of their own.
func TestMPIDeath(t *testing.T) {
	t.Parallel()
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("no setsid: install util-linux")
	}
	for _, l := range launchers(t) {
		if l.name != "MPICH" {
			continue
		}
		for _, fault := range []string{"dies 1", "quits 1"} {
			t.Run(fault, func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				out, err := l.launch(t, library(t), "2", 2, fault, setsid, "--wait")
				if want := "rank 1 of the model does not respond"; err == nil || !strings.Contains(out, want) {
					t.Errorf("%v, said\n%s\nexpected %q", err, out, want)
				}
				if took := time.Since(start); took > 40*time.Second { // leaving in order may take a minute
					t.Errorf("the others ended after %v", took)
				}
			})
		}
		return
	}
	t.Skip("no mpirun.mpich: install MPICH (mpich)")
}
