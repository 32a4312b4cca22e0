package grammar

import (
	"fmt"
)

// rule gives a rule of this package, made when it is first used.
func (w *schemaWriter) rule(name string, make func() part) part {
	r, ok := w.named[name]
	if !ok {
		r = w.b.rule(name)
		w.named[name] = r
		w.b.define(r, make())
	}
	return w.b.call(r)
}

// space may stand between the parts of a value: nothing, a blank, or a line
// end with an indent. It has an end, or a model may fall into writing blanks.
func (w *schemaWriter) space() part {
	if w.opt.Compact {
		return w.b.empty()
	}
	return w.rule("space", func() part {
		b := w.b
		indent := b.repeat(0, 64, func() part { return b.alt(b.literal(" "), b.literal("\t")) })
		return b.optional(b.alt(b.literal(" "), b.seq(b.literal("\n"), indent)))
	})
}

// escaped are the characters that a JSON string may not hold as they are.
var escaped = []runeRange{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}

// jsonText spells characters inside a JSON string: as they are, or where they
// may not be, as the shortest escape.
func jsonText(b *builder, ranges []runeRange) part {
	parts := []part{b.runes(intersect(ranges, without(escaped...)))}
	for _, r := range intersect(ranges, escaped) {
		for c := r.lo; c <= r.hi; c++ {
			text := writeJSON(string(c))
			parts = append(parts, b.literal(text[1:len(text)-1]))
		}
	}
	return b.alt(parts...)
}

// character writes any character of a JSON string, in every spelling.
func (w *schemaWriter) character() part {
	return w.rule("character", func() part {
		b := w.b
		hex := func(set string) part {
			var parts []part
			for _, c := range set {
				parts = append(parts, b.bytes(byte(c), byte(c)))
			}
			return b.alt(parts...)
		}
		const all = "0123456789abcdefABCDEF"
		short := b.seq(b.literal(`\`), hex(`"\/bfnrt`))
		plain := b.alt( // U+0000 to U+D7FF and U+E000 to U+FFFF
			b.seq(hex("0123456789abcefABCEF"), hex(all), hex(all), hex(all)),
			b.seq(hex("dD"), hex("01234567"), hex(all), hex(all)))
		pair := b.seq(hex("dD"), hex("89abAB"), hex(all), hex(all), b.literal(`\u`), hex("dD"), hex("cdefCDEF"), hex(all), hex(all))
		return b.alt(b.runes(without(escaped...)), short, b.seq(b.literal(`\u`), b.alt(plain, pair)))
	})
}

// string writes the strings of a schema.
func (w *schemaWriter) string(o *object, path string) part {
	b := w.b
	quoted := func(p part) part { return b.seq(b.literal(`"`), p, b.literal(`"`)) }
	pattern, hasPattern := o.get("pattern")
	format, _ := o.values["format"].(string)
	known := formats[format]
	lo, hi := w.count(o, "minLength", path), w.count(o, "maxLength", path)
	bounded := lo > 0 || hi >= 0
	if hasPattern && known != "" || (hasPattern || known != "") && bounded {
		return w.fail(path, "pattern, format and lengths of one string cannot be joined; write the lengths into the pattern, as in ^[a-z]{2,8}$")
	}
	switch {
	case hasPattern:
		text, ok := pattern.(string)
		if !ok {
			return w.fail(path+"/pattern", "expected a string")
		}
		p, err := b.regex(text, jsonText, false)
		if err != nil {
			return w.fail(path+"/pattern", "%v", err)
		}
		return quoted(p)
	case known != "":
		p, err := b.regex(known, jsonText, true)
		if err != nil {
			panic(fmt.Sprintf("bug: format %s: %v", format, err))
		}
		return quoted(p)
	case bounded:
		return w.limited(lo, hi, path, quoted)
	}
	return w.rule("string", func() part { return quoted(b.star(w.character())) })
}

func (w *schemaWriter) limited(lo, hi int, path string, quoted func(part) part) part {
	if hi >= 0 && hi < lo {
		return w.fail(path, "minLength %d is more than maxLength %d", lo, hi)
	}
	return quoted(w.b.repeat(lo, hi, w.character))
}

// count reads a keyword that counts; absent, a minimum is 0 and a maximum -1.
func (w *schemaWriter) count(o *object, word, path string) int {
	const most = 1 << 16
	v, ok := o.get(word)
	if !ok {
		if word[:3] == "max" {
			return -1
		}
		return 0
	}

	r, ok := rational(v)
	if !ok || !r.IsInt() || r.Sign() < 0 || !r.Num().IsInt64() || r.Num().Int64() > most {
		w.fail(path+"/"+word, "have %s, expected a whole number from 0 to %d", writeJSON(v), most)
		return 0
	}
	return int(r.Num().Int64())
}

// formats are the patterns of the formats that are known, after RFC 3339, 4122,
// 5321, 1123, 2673, 4291 and 3986, in the part of each that is regular.
var formats = map[string]string{
	"date":      date,
	"time":      clock,
	"date-time": date + `T` + clock,
	"duration":  `P(\d+W|(\d+Y(\d+M)?(\d+D)?|\d+M(\d+D)?|\d+D)(T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))?|T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))`,
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"email":     `[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*@` + host,
	"hostname":  host,
	"ipv4":      `(` + octet + `\.){3}` + octet,
	"ipv6": `(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}` +
		`|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}` +
		`|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:))`,
	"uri": `[A-Za-z][A-Za-z0-9+.-]*:(//[A-Za-z0-9._~%!$&'()*+,;=:@\[\]-]*)?[A-Za-z0-9._~%!$&'()*+,;=:@/-]*(\?[A-Za-z0-9._~%!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~%!$&'()*+,;=:@/?-]*)?`,
}

const (
	date  = `\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d))`
	clock = `([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	host  = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*`
)
