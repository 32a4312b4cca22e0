//go:build unix

package binary

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/device/ranks"
)

// Partitioned reports whether the model is compiled for several devices. Then it has
// code and weights per rank only.
func (b *Binary) Partitioned() bool { return b.Manifest.Partition != nil }

// Join makes the process a rank of the job that it was started in; say prints what it
// waits for. The job is nil if the model is not partitioned, if the process was not started
// by a job launcher, or if it could not join. With an error, a job can only be aborted.
func (b *Binary) Join(ctx context.Context, say func(format string, args ...any)) (job *ranks.Job, err error) {
	if !b.Partitioned() {
		return nil, nil
	}
	l, ok, err := comm.Launched()
	if err != nil {
		return nil, Blame(err)
	}
	if !ok {
		if l, ok, err = comm.TorchrunLaunched(); err != nil || !ok {
			return nil, Blame(err)
		}
		if err := b.onGPUs(l); err != nil {
			return nil, err
		}
	}
	p := &rankProgram{b: b, launch: l, connect: func(d *cuda.Device) {
		b.connectByNCCL(d, &l, func(file string) (cuda.Link, error) { return job.OpenNCCL(file) }) // job is set when this is called
	}}
	if job, err = ranks.Join(ctx, p, l, say); err != nil {
		return job, Blame(err)
	}
	b.open = func(s ranks.Settings) (ranks.Group, error) { return job.Leader(s) }
	return job, nil
}

// onGPUs returns an error for a job without MPI that has a rank on a CPU.
func (b *Binary) onGPUs(l comm.Launch) error {
	shares, err := b.Shares()
	if err != nil {
		return err
	}
	for r, own := range shares {
		if own.CUDAPlan == "" || os.Getenv("IFLOWC_DEVICE") == "cpu" {
			return Blame(comm.WithoutMPI(l, r))
		}
	}
	return nil
}

// threads opens all ranks as threads of this process.
func (b *Binary) threads(s ranks.Settings) (ranks.Group, error) {
	return ranks.Threads(&rankProgram{b: b, connect: func(*cuda.Device) {}}, s)
}

// group opens the ranks of a partitioned model, once.
func (b *Binary) group(s ranks.Settings) (device.Device, error) {
	if b.ranks != nil {
		return b.ranks, nil
	}
	g, err := b.open(s)
	if err != nil {
		return nil, Blame(err)
	}
	b.ranks, b.status = g, g
	return g, nil
}

// Ranks returns the status of the ranks in this process.
func (b *Binary) Ranks() ranks.Status { return b.status }

// A shard is a rank's loaded weights.
type shard struct {
	file *Weights
	data []byte
}

// closeRanks closes the weights of the local ranks.
func (b *Binary) closeRanks() {
	for _, s := range b.shards {
		s.file.Close()
	}
	b.shards = nil
}

// A rankProgram implements ranks.Program for a partitioned binary.
type rankProgram struct {
	b       *Binary
	launch  comm.Launch            // the job's launch; zero if ranks are threads
	connect func(gpu *cuda.Device) // sets up direct communication of a rank's GPU
}

// Manifest returns the manifest of the whole model.
func (r *rankProgram) Manifest() *manifest.Manifest { return r.b.Manifest }

// Hash returns a hash of everything that the communication of the ranks depends on.
func (r *rankProgram) Hash() string {
	h := sha256.New()
	io.WriteString(h, r.b.Embedded.Manifest)
	for _, name := range slices.Sorted(maps.Keys(r.b.Embedded.Libs)) {
		fmt.Fprintf(h, "%s %d\n", name, len(r.b.Embedded.Libs[name]))
		io.WriteString(h, r.b.Embedded.Libs[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Shares returns the ranks' manifests.
func (r *rankProgram) Shares() ([]*manifest.Manifest, error) { return r.b.Shares() }

// Rank opens a rank's code.
func (r *rankProgram) Rank(rank int, s *ranks.Settings) (*ranks.Rank, error) {
	own, err := r.b.ofRank(rank)
	if err != nil {
		return nil, err
	}
	lib, err := own.CPU(s.ISA)
	if err != nil {
		return nil, err
	}
	k := &ranks.Rank{Manifest: own.Manifest, Device: lib, Library: lib}
	if own.Manifest.CUDAPlan != "" {
		if err := r.onGPU(rank, own, k, s.Profile); err != nil {
			return nil, err
		}
	}
	profile, err := r.b.profile(s.Profile, CPUProfile, false)
	if err != nil {
		return nil, err
	}
	k.Dispatch, err = dispatch.Table(own.Manifest.Matmuls, profile)
	return k, err
}

// onGPU opens a rank on the GPU with its number, unless $IFLOWC_DEVICE is cpu. A
// missing GPU is an error, because the model was partitioned for it.
func (r *rankProgram) onGPU(rank int, own *Binary, k *ranks.Rank, profile string) error {
	number, err := strconv.Atoi(r.b.Manifest.Partition.Ranks[rank].Device)
	if err != nil {
		return fmt.Errorf("rank %d has code for a GPU and is on %q; compile the model again", rank, r.b.Manifest.Partition.Ranks[rank].Device)
	}
	if device := os.Getenv("IFLOWC_DEVICE"); device == "cpu" {
		return nil
	}
	if at, apart := r.launch.Apart(); apart { // device numbers count over all machines
		number = at
	}
	own.Manifest.Engine = r.b.Manifest.Engine
	d, err := own.gpu(number, profile, nil)
	if err != nil {
		return fmt.Errorf("rank %d: %w; set IFLOWC_DEVICE=cpu to run all ranks on the CPU", rank, err)
	}
	r.connect(d)
	k.Device = d
	return nil
}

// connectByNCCL makes the GPUs of a job communicate directly if the job has no MPI, or
// if $IFLOWC_NCCL is set on all ranks, to 1 or to the library's file. It is untested on
// GPUs, so it is not the default with MPI.
func (b *Binary) connectByNCCL(d *cuda.Device, l *comm.Launch, open func(file string) (cuda.Link, error)) {
	file, part := os.Getenv("IFLOWC_NCCL"), b.Manifest.Partition
	onCPU := slices.ContainsFunc(part.Ranks, func(k manifest.Rank) bool { return k.Device == "cpu" })
	unset := file == "" || file == "0"
	if onCPU || unset && l.Master == "" {
		return
	}
	if file == "1" || file == "0" {
		file = ""
	}
	d.OpenLink = func() (cuda.Link, error) { return open(file) }
}

// ofRank returns a binary that contains one rank only.
func (b *Binary) ofRank(rank int) (*Binary, error) {
	file := b.Manifest.Partition.Ranks[rank].Manifest
	own := &Binary{Embedded: b.Embedded, Manifest: &manifest.Manifest{}, Program: b.Program}
	if err := json.Unmarshal([]byte(b.Embedded.Libs[file]), own.Manifest); err != nil {
		return nil, fmt.Errorf("the embedded %s cannot be read: %w; compile the model again", file, err)
	}
	return own, nil
}

// Shares returns the manifests of the code that computes the model: its ranks' if it is
// partitioned, else its own.
func (b *Binary) Shares() ([]*manifest.Manifest, error) {
	if !b.Partitioned() {
		return []*manifest.Manifest{b.Manifest}, nil
	}
	var list []*manifest.Manifest
	for r := range b.Manifest.Partition.Ranks {
		own, err := b.ofRank(r)
		if err != nil {
			return nil, err
		}
		list = append(list, own.Manifest)
	}
	return list, nil
}

// Weights loads a rank's weights: the file beside the program, or beside the named
// file, with the rank's suffix.
func (r *rankProgram) Weights(rank int, s *ranks.Settings) (data []byte, source string, err error) {
	own, err := r.b.ofRank(rank)
	if err != nil {
		return nil, "", err
	}
	path := r.b.shardPath(rank, s.Weights)
	if w := r.b.kept(path); w != nil {
		return w.data, w.file.Source(), nil
	}
	p, err := packed.Open(path)
	if os.IsNotExist(err) {
		return nil, "", fmt.Errorf("%s is missing; put every rank's weights beside the program, or beside the FILE of --weights with the same suffix", path)
	}
	if err != nil {
		return nil, "", err
	}
	if err = own.check(p); err == nil {
		data, err = p.Load(false)
	}
	if err != nil {
		p.Close()
		return nil, "", err
	}
	r.b.keep(path, shard{p, data})
	return data, p.Source(), nil
}

// shardPath returns the path of a rank's weights; named is the file of --weights, or
// "".
func (b *Binary) shardPath(rank int, named string) string {
	return cmp.Or(strings.TrimSuffix(named, ".weights"), b.Program) + "." + b.Manifest.Partition.Ranks[rank].Weights
}

// keep stores loaded weights until the binary is closed, for models that are opened
// again.
func (b *Binary) keep(path string, s shard) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shards == nil {
		b.shards = map[string]shard{}
	}
	b.shards[path] = s
}

func (b *Binary) kept(path string) *shard {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.shards[path]; ok {
		return &s
	}
	return nil
}
