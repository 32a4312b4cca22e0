package templates

// ThreadPool is the C source of the thread pool. Every model library links it.
func ThreadPool() string {
	data, err := files.ReadFile("cpu/pool.c")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(data)
}
