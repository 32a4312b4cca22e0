package dispatch

// A Machine is the fingerprint of the device that a profile was measured on. It decides
// whether the profile applies to another device.
type Machine struct {
	Arch    string  `json:"arch"`              // GOARCH
	CPU     string  `json:"cpu,omitempty"`     // model name as reported by the system
	Vendor  string  `json:"vendor,omitempty"`  // AuthenticAMD, GenuineIntel, …
	Family  int     `json:"family,omitempty"`  // CPUID family
	Model   int     `json:"model,omitempty"`   // CPUID model
	Cores   int     `json:"cores"`             // CPUs available to the program
	Threads int     `json:"threads"`           // threads that were measured
	Caches  []Cache `json:"caches,omitempty"`  // of the first CPU
	ISA     string  `json:"isa,omitempty"`     // kernel variant
	CC      string  `json:"cc,omitempty"`      // version line of the compiler
	Kernels string  `json:"kernels,omitempty"` // SHA-256 of the kernels' sources and flags

	GPU *GPU `json:"gpu,omitempty"` // nil: the profile was measured on CPUs

	// ReadGBs is the read bandwidth of all threads in GB/s, before and after each
	// measurement.
	ReadGBs []float64 `json:"read_gb_s,omitempty"`
}

// A GPU is the fingerprint of a GPU.
type GPU struct {
	Name       string `json:"name"`
	Compute    int    `json:"compute"`            // 90: compute capability 9.0
	Processors int    `json:"processors"`         // streaming multiprocessors
	L2         int64  `json:"l2"`                 // bytes of the L2 cache
	ClockMHz   int    `json:"clock_mhz"`          // maximum of the multiprocessors
	MemoryMHz  int    `json:"memory_mhz"`         // maximum of the memory
	BusBits    int    `json:"bus_bits"`           // width of the memory bus
	ECC        bool   `json:"ecc"`                // ECC memory is enabled
	Driver     int    `json:"driver"`             // 13000: CUDA 13.0
	BLAS       string `json:"blas,omitempty"`     // version of cuBLASLt
	Emulated   bool   `json:"emulated,omitempty"` // an emulator, so its times are meaningless
	// Reported by NVML before and after the measurement; empty: not available.
	RunningMHz      []int    `json:"running_mhz,omitempty"`      // of the multiprocessors
	RunningMemory   []int    `json:"running_memory,omitempty"`   // of the memory, in MHz
	ThrottleReasons []uint64 `json:"throttle_reasons,omitempty"` // bit sets of NVML
}

// A Cache is a data cache.
type Cache struct {
	Level int   `json:"level"`
	Bytes int64 `json:"bytes"`
}

// A Measurement holds the data that the rules of a shape were derived from.
type Measurement struct {
	Rows  []int  `json:"rows"`         // measured row counts, ascending
	M1    int    `json:"m1,omitempty"` // flat_gemm is faster than gemv from this row count on; 0: never
	M2    int    `json:"m2,omitempty"` // gemm is faster than flat_gemm from this row count on; 0: never
	Impls []Time `json:"impls"`
	// Winner is the index in Impls of the fastest implementation for each of Rows.
	Winner []int `json:"winner"`
	// Regret is the largest relative slowdown of the rules against the fastest
	// implementation: 0.01 is one percent.
	Regret float64 `json:"regret"`
}

// A Time holds one implementation's times for each of the measurement's rows; 0 if it
// was skipped because it was much slower before.
type Time struct {
	Impl    string    `json:"impl"`
	Us      []float64 `json:"us"` // median, microseconds
	Low     []float64 `json:"lo"` // 95 % confidence interval of the median
	High    []float64 `json:"hi"`
	Samples []int     `json:"n"`
}
