//go:build unix

package cpu

import (
	"reflect"
	"strings"
	"unicode"
)

// A Field is one field of a mirrored struct; an empty name stands for the struct's
// size.
type Field struct {
	Struct, Field string
	Offset        uintptr
}

// Layout lists the mirrored structs and their fields by their C names.
func Layout() []Field {
	var all []Field
	for name, t := range map[string]reflect.Type{"ifl_step": reflect.TypeFor[stepHeader](), "ifl_lora": reflect.TypeFor[siteHeader](), "ifl_config": reflect.TypeFor[configHeader]()} {
		for i := range t.NumField() {
			f := t.Field(i)
			all = append(all, Field{name, snake(f.Name), f.Offset})
		}
		all = append(all, Field{name, "", t.Size()})
	}
	return all
}

func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
