package templates

// MatmulProbe is the C source of the benchmark driver that times matmul kernels as
// the generated step runs them. It is linked with the pool and the kernels.
func MatmulProbe() string {
	data, err := files.ReadFile("cpu/probe_matmul.c")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(data)
}
