//go:build unix

package binary

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/device/ranks"
)

// Device opens the model's code for a device: "cpu", "cuda" or "cuda:N". If name is "",
// it is $IFLOWC_DEVICE, else a GPU if the program has code for GPUs and one is usable,
// else the CPU; notice receives the reason. If s names an instruction set, the default
// is the CPU. The ranks of a partitioned model run on the devices that the model was
// compiled for; they use the other settings too.
func (b *Binary) Device(name string, s ranks.Settings, notice func(format string, args ...any)) (device.Device, error) {
	isa := s.ISA
	if b.Partitioned() {
		if name != "" && name != "cpu" {
			return nil, Fault{fmt.Errorf("--device %s: the model is compiled for the devices %s", name, b.Manifest.Partition.Devices)}
		}
		return b.group(s)
	}
	if name == "" && isa == "" {
		name = os.Getenv("IFLOWC_DEVICE")
	}
	kind, number, _ := strings.Cut(name, ":")
	switch {
	case kind == "cpu" || kind == "" && (isa != "" || b.Manifest.CUDAPlan == ""):
		return b.onCPU(isa)
	case kind == "cuda" && b.Manifest.CUDAPlan == "":
		return nil, Fault{fmt.Errorf("--device %s: the program has no code for GPUs; compile the model with --target cuda", name)}
	case kind != "cuda" && kind != "":
		return nil, Fault{fmt.Errorf("--device %s: expected cpu, cuda or cuda:N", name)}
	}
	d, err := b.numbered(name, number, s.Profile, notice)
	if err == nil {
		return d, nil
	}
	if errors.As(err, &Fault{}) {
		return nil, err
	}
	if kind != "" {
		return nil, Fault{err}
	}
	notice("%v; using the CPU instead", err)
	return b.onCPU(isa)
}

func (b *Binary) onCPU(isa string) (device.Device, error) {
	lib, err := b.CPU(isa)
	if err != nil {
		return nil, err
	}
	return lib, nil
}

// numbered parses the part of --device after the colon and opens the GPU.
func (b *Binary) numbered(device, number, profile string, notice func(format string, args ...any)) (*cuda.Device, error) {
	at := 0
	if number != "" {
		var err error
		if at, err = strconv.Atoi(number); err != nil || at < 0 {
			return nil, Fault{fmt.Errorf("--device %s: expected the GPU's number after the colon", device)}
		}
	}
	return b.gpu(at, profile, notice)
}

// gpu opens the CUDA driver and a GPU and loads the model's kernels.
func (b *Binary) gpu(number int, profile string, notice func(format string, args ...any)) (*cuda.Device, error) {
	plan := &manifest.CUDA{}
	if err := json.Unmarshal([]byte(b.Embedded.Libs[b.Manifest.CUDAPlan]), plan); err != nil {
		return nil, fmt.Errorf("the embedded %s cannot be read: %w; compile the model again", b.Manifest.CUDAPlan, err)
	}
	measured, err := b.profile(profile, GPUProfile, true)
	if err != nil {
		return nil, Fault{err}
	}
	driver, err := b.driver()
	if err != nil {
		return nil, err
	}
	gpu, err := driver.OpenGPU(number)
	if err != nil {
		return nil, err
	}
	e := &b.Manifest.Engine
	d := &cuda.Device{
		GPU: gpu, Manifest: b.Manifest, Plan: plan, Files: b.Embedded.Libs, Images: os.Getenv("IFLOWC_CUDA_IMAGES"),
		Host:   cuda.Host{KVPercent: e.HostKVPercent, Embeddings: e.HostEmbeddings != nil && *e.HostEmbeddings},
		Graphs: os.Getenv("IFLOWC_CUDA_GRAPHS") != "0", BLAS: cuda.BLASChoice(os.Getenv("IFLOWC_CUBLASLT")), Profile: measured, Notice: notice,
	}
	if err := d.Load(); err != nil && d.Images != "" {
		return nil, Fault{fmt.Errorf("IFLOWC_CUDA_IMAGES: %w", err)}
	} else if err != nil {
		return nil, err
	}
	return d, nil
}

// TimerOn opens the model on a GPU, "cuda" or "cuda:N", to measure its matmuls with up
// to the given number of rows.
func (b *Binary) TimerOn(device string, weights []byte, rows int, notice func(format string, args ...any)) (*cuda.Device, *cuda.Timer, error) {
	kind, number, _ := strings.Cut(device, ":")
	if kind != "cuda" || b.Manifest.CUDAPlan == "" {
		return nil, nil, Fault{fmt.Errorf("--device %s: expected cuda or cuda:N, and a program that was compiled with --target cuda", device)}
	}
	d, err := b.numbered(device, number, "", notice)
	if err != nil {
		return nil, nil, Fault{err}
	}
	d.Profile = nil // reserve memory for every implementation
	t, err := d.Timer(weights, rows)
	return d, t, err
}

// driver opens the CUDA driver or, in test binaries, the embedded stand-in.
func (b *Binary) driver() (*cuda.Driver, error) {
	if b.Manifest.CUDADriver == "" {
		return cuda.OpenDriver("")
	}
	dir, err := os.MkdirTemp("", "iflowc-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, b.Manifest.CUDADriver)
	if err := os.WriteFile(path, []byte(b.Embedded.Libs[b.Manifest.CUDADriver]), 0o700); err != nil {
		return nil, err
	}
	return cuda.OpenDriver(path)
}
