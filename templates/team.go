package templates

// Team is the C source of the thread team that every model library carries.
func Team() string {
	data, err := files.ReadFile("cpu/team.c")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(data)
}
