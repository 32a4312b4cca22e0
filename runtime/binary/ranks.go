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

// Partitioned says that the model is compiled for several devices: it has code
// and weights for each rank, and none for all.
func (b *Binary) Partitioned() bool { return b.Manifest.Partition != nil }

// Join makes the process a rank of the job that it was started in, where the
// model is partitioned and it was; joined says so. Nobody but the leader gets
// anything else to do than to work for it.
func (b *Binary) Join(ctx context.Context) (job *ranks.Job, joined bool, err error) {
	if !b.Partitioned() {
		return nil, false, nil
	}
	l, ok := comm.Launched()
	if !ok {
		if l, ok, err = comm.TorchrunLaunched(); err != nil || !ok {
			return nil, false, Blame(err)
		}
		if err := b.onGPUs(l); err != nil {
			return nil, false, err
		}
	}
	p := &rankProgram{b: b, launch: l, connect: func(rank int, d *cuda.Device) {
		b.connectByNCCL(rank, d, &l, func(file string) (cuda.Link, error) { return job.OpenNCCL(file) }) // the job is known by then
	}}
	if job, err = ranks.Join(ctx, p, l); err != nil {
		return nil, false, Blame(err)
	}
	b.open = func(s ranks.Settings) (ranks.Group, error) { return job.Leader(s) }
	return job, true, nil
}

// onGPUs refuses a job without MPI of which a rank is on no GPU.
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

// threads opens the code of all ranks as threads of this process.
func (b *Binary) threads(s ranks.Settings) (ranks.Group, error) {
	return ranks.Threads(&rankProgram{b: b, connect: func(int, *cuda.Device) {}}, s)
}

// group opens the code of a partitioned model, once.
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

// Ranks says how the ranks of the model do that are in this process.
func (b *Binary) Ranks() ranks.Status { return b.status }

// A shard is a rank's weights, read.
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

// rankProgram is the program of a partitioned binary.
type rankProgram struct {
	b       *Binary
	launch  comm.Launch                      // of the job whose processes they are; of threads the zero Launch
	connect func(rank int, gpu *cuda.Device) // lets a rank's GPU reach the others
}

// Manifest is the whole model's.
func (r *rankProgram) Manifest() *manifest.Manifest { return r.b.Manifest }

// Hash is over everything that decides what the ranks say to each other.
func (r *rankProgram) Hash() string {
	h := sha256.New()
	io.WriteString(h, r.b.Embedded.Manifest)
	for _, name := range slices.Sorted(maps.Keys(r.b.Embedded.Libs)) {
		fmt.Fprintf(h, "%s %d\n", name, len(r.b.Embedded.Libs[name]))
		io.WriteString(h, r.b.Embedded.Libs[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Rank reads a rank's manifest and opens its library.
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

// onGPU lets the GPU of the rank's number compute it, unless $IFLOWC_DEVICE says
// cpu. A GPU that is missing is an error: the arrangement was made for it.
func (r *rankProgram) onGPU(rank int, own *Binary, k *ranks.Rank, profile string) error {
	number, err := strconv.Atoi(r.b.Manifest.Partition.Ranks[rank].Device)
	if err != nil {
		return fmt.Errorf("rank %d has code for a GPU and is on %q; compile the model again", rank, r.b.Manifest.Partition.Ranks[rank].Device)
	}
	if device := os.Getenv("IFLOWC_DEVICE"); device == "cpu" {
		return nil
	}
	if at, apart := r.launch.Apart(); apart { // the devices of several machines are numbered through
		number = at
	}
	own.Manifest.Engine = r.b.Manifest.Engine
	d, err := own.gpu(number, profile, nil)
	if err != nil {
		return fmt.Errorf("rank %d: %w; IFLOWC_DEVICE=cpu lets the processor compute all ranks", rank, err)
	}
	r.connect(rank, d)
	k.Device = d
	return nil
}

// connectByNCCL lets the GPUs of a job reach each other without the host where the
// job has no MPI, or $IFLOWC_NCCL is set on all ranks: 1, or the library's file. It
// has not been tried on GPUs, so that under MPI nobody gets it unasked.
func (b *Binary) connectByNCCL(rank int, d *cuda.Device, l *comm.Launch, open func(file string) (cuda.Link, error)) {
	file, part := os.Getenv("IFLOWC_NCCL"), b.Manifest.Partition
	onCPU := slices.ContainsFunc(part.Ranks, func(k manifest.Rank) bool { return k.Device == "cpu" })
	unasked := file == "" || file == "0"
	if onCPU || unasked && l.Master == "" {
		return
	}
	if file == "1" || file == "0" {
		file = ""
	}
	own := part.Ranks[rank]
	d.Group = cuda.Group{First: rank - own.TPRank, TPSize: own.TPSize}
	d.OpenLink = func() (cuda.Link, error) { return open(file) }
}

// ofRank is the binary as if it held one rank alone.
func (b *Binary) ofRank(rank int) (*Binary, error) {
	file := b.Manifest.Partition.Ranks[rank].Manifest
	own := &Binary{Embedded: b.Embedded, Manifest: &manifest.Manifest{}, Program: b.Program}
	if err := json.Unmarshal([]byte(b.Embedded.Libs[file]), own.Manifest); err != nil {
		return nil, fmt.Errorf("the embedded %s cannot be read: %w; compile the model again", file, err)
	}
	return own, nil
}

// Shares are the manifests of what computes the model: its ranks' where it is
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

// Weights opens and reads a rank's shard: beside the program, or beside the
// file named, with the rank's ending.
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
		return nil, "", fmt.Errorf("%s is missing; every rank's weights must lie beside the program, or beside the FILE of --weights with the same ending", path)
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

// shardPath is where a rank's weights lie; named is the file of --weights, if
// any.
func (b *Binary) shardPath(rank int, named string) string {
	return cmp.Or(strings.TrimSuffix(named, ".weights"), b.Program) + "." + b.Manifest.Partition.Ranks[rank].Weights
}

// keep closes weights with the binary; a model that is opened again has them.
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
