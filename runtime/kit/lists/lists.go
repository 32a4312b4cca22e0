// Package lists checks the flags of a command line that take lists.
package lists

import (
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
)

// Check refuses lists that were given empty: --api-key "" is more probably a
// variable that nobody set than the wish to serve everybody. A flag whose empty
// list means something is a pointer, nil where the flag was left out. Lists are
// slices, and texts with the placeholder LIST.
func Check(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && empty(p.Flag) {
			return fmt.Errorf("--%s: the list is empty; leave the flag out for the default", p.Flag.Name)
		}
	}
	for _, f := range k.Flags() {
		for _, env := range f.Envs {
			if v, set := os.LookupEnv(env); set && v == "" && empty(f) {
				return fmt.Errorf("%s is set, but empty; give it a value, or unset it for the default of --%s", env, f.Name)
			}
		}
	}
	return nil
}

func empty(f *kong.Flag) bool {
	switch f.Target.Kind() {
	case reflect.Slice:
		return f.Target.Len() == 0
	case reflect.String:
		return f.PlaceHolder == "LIST" && f.Target.Len() == 0
	}
	return false
}
