package templates

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed profiles/*.json
var profiles embed.FS

// Profiles returns the embedded machine profiles by file name, in the format of
// runtime/artifact/dispatch.
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
