// Package lists checks the flags of a command line that have lists as values.
package lists

import (
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
)

// Check returns an error for lists that are set but empty: --api-key "" more likely
// comes from an unset shell variable than from the wish to have no keys. A flag with a
// meaningful empty list is a pointer, which is nil if the flag is absent. Lists are
// slices, and strings with the placeholder LIST.
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
