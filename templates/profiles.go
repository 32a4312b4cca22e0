package templates

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed profiles/*.json
var profiles embed.FS

// Profiles are the measurements that are part of the program, in the format of
// runtime/artifact/dispatch, by file name.
func Profiles() map[string][]byte {
	names, err := fs.Glob(profiles, "profiles/*.json")
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string][]byte{}
	for _, name := range names {
		data, err := profiles.ReadFile(name)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[path.Base(name)] = data
	}
	return out
}
