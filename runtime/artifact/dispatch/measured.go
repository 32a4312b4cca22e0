package dispatch

// A Machine is the fingerprint of the device that a profile was measured on:
// what decides whether its rules hold elsewhere.
type Machine struct {
	Arch    string  `json:"arch"`              // GOARCH
	CPU     string  `json:"cpu,omitempty"`     // model name as the system gives it
	Vendor  string  `json:"vendor,omitempty"`  // AuthenticAMD, GenuineIntel, …
	Family  int     `json:"family,omitempty"`  // CPUID family
	Model   int     `json:"model,omitempty"`   // CPUID model
	Cores   int     `json:"cores"`             // processors the program could use
	Threads int     `json:"threads"`           // threads that measured
	Caches  []Cache `json:"caches,omitempty"`  // of the first processor
	ISA     string  `json:"isa,omitempty"`     // variant of the kernels
	CC      string  `json:"cc,omitempty"`      // compiler's version line
	Kernels string  `json:"kernels,omitempty"` // SHA-256 of the kernels' sources and flags

	GPU *GPU `json:"gpu,omitempty"` // that was measured; nil: the processors were

	// ReadGBs is the read bandwidth of all threads in GB/s, before and after
	// each run that measured.
	ReadGBs []float64 `json:"read_gb_s,omitempty"`
}

// A GPU is a graphics processor with what decides its times.
type GPU struct {
	Name       string `json:"name"`
	Compute    int    `json:"compute"`            // 90: compute capability 9.0
	Processors int    `json:"processors"`         // multiprocessors
	L2         int64  `json:"l2"`                 // bytes of the second cache
	ClockMHz   int    `json:"clock_mhz"`          // highest of the multiprocessors
	MemoryMHz  int    `json:"memory_mhz"`         // highest of the memory
	BusBits    int    `json:"bus_bits"`           // of the memory
	ECC        bool   `json:"ecc"`                // of the memory
	Driver     int    `json:"driver"`             // 13000: CUDA 13.0
	BLAS       string `json:"blas,omitempty"`     // library of cuBLASLt
	Emulated   bool   `json:"emulated,omitempty"` // its times mean nothing
	// As NVML told before and after measuring; none: it did not tell.
	RunningMHz      []int    `json:"running_mhz,omitempty"`      // of the multiprocessors
	RunningMemory   []int    `json:"running_memory,omitempty"`   // MHz of the memory
	ThrottleReasons []uint64 `json:"throttle_reasons,omitempty"` // NVML's bits
}

// A Cache is one data cache.
type Cache struct {
	Level int   `json:"level"`
	Bytes int64 `json:"bytes"`
}

// A Measurement is what the rules of a shape were chosen from.
type Measurement struct {
	Rows  []int  `json:"rows"`         // row counts that were measured, ascending
	M1    int    `json:"m1,omitempty"` // flat_gemm beats gemv from so many rows on; 0: nowhere
	M2    int    `json:"m2,omitempty"` // gemm beats flat_gemm from so many rows on; 0: nowhere
	Impls []Time `json:"impls"`
	// Winner is the fastest implementation at each of Rows, as an index of
	// Impls.
	Winner []int `json:"winner"`
	// Regret is how much slower than the fastest the rules are at their worst,
	// as a share: 0.01 is one percent.
	Regret float64 `json:"regret"`
}

// A Time is one implementation's times, an entry for each of the measurement's
// rows; 0 where it was not measured because it had lost by far before.
type Time struct {
	Impl    string    `json:"impl"`
	Us      []float64 `json:"us"` // median, microseconds
	Low     []float64 `json:"lo"` // 95 % confidence interval of the median
	High    []float64 `json:"hi"`
	Samples []int     `json:"n"`
}
