//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cuda"
)

// lookGPUs looks for the compiler of --target cuda and for GPUs.
func lookGPUs(ctx context.Context) []finding {
	var found []finding
	if nvcc, err := toolchain.FindNVCC(ctx); err != nil {
		reason, _, _ := strings.Cut(err.Error(), ";")
		found = append(found, finding{State: findingAbsent, What: "nvcc", Detail: "only --target cuda needs it: " + reason, Remedy: toolchain.NVCCHint()})
	} else {
		found = append(found, finding{State: findingOK, What: "nvcc", Detail: nvcc.Path + ": " + nvcc.Version})
	}
	driver, err := cuda.OpenDriver("")
	if err != nil {
		found = append(found, finding{State: findingAbsent, What: "CUDA driver", Detail: fmt.Sprintf("only running on a GPU needs it: %v", err)})
	} else {
		found = append(found, finding{State: findingOK, What: "CUDA driver", Detail: fmt.Sprintf("CUDA %d.%d", driver.Version/1000, driver.Version%1000/10)})
		found = append(found, lookDevices(driver)...)
	}
	for _, file := range comm.NCCLFiles() {
		if path := loadable(file); path != "" {
			return append(found, finding{State: findingOK, What: "NCCL", Detail: path})
		}
	}
	return append(found, finding{State: findingAbsent, What: "NCCL", Detail: "only a model on several GPUs needs it: libnccl.so.2 is not found",
		Remedy: "pip install nvidia-nccl-cu13"})
}

// lookDevices lists the driver's GPUs.
func lookDevices(driver *cuda.Driver) (found []finding) {
	for i := 0; ; i++ {
		gpu, err := driver.OpenGPU(i)
		if err != nil {
			if i == 0 {
				found = append(found, finding{State: findingAbsent, What: "GPU", Detail: err.Error()})
			}
			return found
		}
		found = append(found, finding{State: findingOK, What: fmt.Sprintf("GPU %d", i),
			Detail: fmt.Sprintf("%s, compute capability %d.%d, %d multiprocessors", gpu.Name, gpu.Compute/10, gpu.Compute%10, gpu.Processors)})
	}
}
