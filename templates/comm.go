package templates

import (
	"embed"
	"path"
)

//go:embed comm
var commFiles embed.FS

// A Source is a C file.
type Source struct{ Name, Text string }

// Comm returns the C sources of the transports between the ranks of a partitioned
// model. Every rank's library links them.
func Comm() []Source {
	var list []Source
	for _, name := range []string{"endpoint.c", "threads.c", "mpi.c"} {
		data, err := commFiles.ReadFile(path.Join("comm", name))
		if err != nil {
			panic("bug: " + err.Error())
		}
		list = append(list, Source{name, string(data)})
	}
	return list
}
