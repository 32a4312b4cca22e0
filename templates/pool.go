package templates

// ThreadPool is the C source of the thread pool that every model library carries.
func ThreadPool() string {
	data, err := files.ReadFile("cpu/pool.c")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(data)
}
