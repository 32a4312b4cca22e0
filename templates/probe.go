package templates

// MatmulProbe is the C source of the driver that times matmul kernels as the
// emitted step runs them; it is linked with the pool and the kernels.
func MatmulProbe() string {
	data, err := files.ReadFile("cpu/probe_matmul.c")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(data)
}
