package grammar

// A format is the pattern of a known format. Each pattern matches a regular subset of
// the format: every match is valid. Constraints that a pattern cannot express, such as
// the total length of a host name, make the subset smaller. The narrow pattern, if
// given, applies beside other conditions: its automaton is small.
type format struct{ pattern, narrow string }

// formats are the known formats, by RFC 3339, 9562, 5321, 6531, 1123, 5890, 2673, 4291,
// 3986, 3987, 6570, 6901 and ECMA-262.
var formats = map[string]format{
	"date":                  {pattern: date},
	"time":                  {pattern: clock},
	"date-time":             {pattern: date + `T` + clock},
	"duration":              {pattern: `P(` + digits9 + `W|(` + digits9 + `Y(` + digits9 + `M(` + digits9 + `D)?)?|` + digits9 + `M(` + digits9 + `D)?|` + digits9 + `D)(T` + span + `)?|T` + span + `)`},
	"uuid":                  {pattern: `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`},
	"email":                 {mailbox + host, mailbox + narrowHost},
	"idn-email":             {pattern: `(` + atom + `|` + letter + `)(\.?(` + atom + `|` + letter + `)){0,15}@` + idnHost},
	"hostname":              {host, narrowHost},
	"idn-hostname":          {pattern: idnHost},
	"ipv4":                  {pattern: ipv4},
	"ipv6":                  {pattern: ipv6},
	"uri":                   {scheme + `(` + authority(regname, literal) + hierarchy(pchar), scheme + `(` + authority(regname, "") + hierarchy(pchar)},
	"uri-reference":         {reference(regname, literal, pchar), reference(regname, "", pchar)},
	"iri":                   {scheme + `(` + authority(iregname, literal) + hierarchy(ipchar), scheme + `(` + authority(iregname, "") + hierarchy(ipchar)},
	"iri-reference":         {reference(iregname, literal, ipchar), reference(iregname, "", ipchar)},
	"uri-template":          {pattern: `([!#$&(-;=?-Z\[\]_a-z~\xA0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF]|` + percent + `|\{[+#./;?&]?` + variable + `(,` + variable + `){0,15}\})*`},
	"json-pointer":          {pattern: pointer},
	"relative-json-pointer": {pattern: `[1-9]?[0-9](#|` + pointer + `)`},
	"regex":                 {pattern: `\^?` + piece + `*(\|` + piece + `+)*\$?`},
}

const (
	year  = `(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})`
	leap  = `(\d\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)`
	date  = `(` + year + `-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))|` + leap + `-02-29)`
	part9 = `(\.\d{1,9})?`
	clock = `(([01]\d|2[0-3]):[0-5]\d:[0-5]\d` + part9 + `(Z|[+-]([01]\d|2[0-3]):[0-5]\d)|23:59:60` + part9 + `(Z|\+00:00))` // a leap second is the last second of the day (UTC)

	digits9 = `\d{1,9}`
	span    = `(` + digits9 + `H(` + digits9 + `M(` + digits9 + `S)?)?|` + digits9 + `M(` + digits9 + `S)?|` + digits9 + `S)`

	mailbox = atom + `(\.?` + atom + `){0,31}@`
	atom    = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
	// Up to four labels of up to 61 characters, or eight of up to 29; at most 253 in
	// total. The last label is no number, so that a name is no IPv4 address (RFC 1123, 2.1).
	host  = `((` + label + `{0,30}\.){0,3}([A-Za-z]` + more + `{0,30}|` + numbered + more + `{0,25})|(` + label + `{0,14}\.){0,7}([A-Za-z]` + more + `{0,14}|` + numbered + more + `{0,9}))`
	label = `[A-Za-z0-9]` + more
	// In the last label: some digits and a character that makes it no number.
	numbered   = `\d{1,9}([A-Za-z]|-[A-Za-z0-9])`
	more       = `(-?[A-Za-z0-9])`
	narrowHost = `([A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?\.){0,3}[A-Za-z]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?`

	// Lower-case letters that IDNA 2008 always allows and that are written from left to
	// right. Eight of them in a label have at most 63 characters in Punycode.
	letter  = `[\u00DF-\u00F6\u00F8-\u00FF\u03B1-\u03C9\u0430-\u044F\u3041-\u3096\u30A1-\u30FA\u4E00-\u9FA5\uAC00-\uD7A3]`
	idnHost = `((` + host + `)|` + idnName + `)`
	idnName = `(` + idnUnit + `(-?` + idnUnit + `){0,7}\.){0,3}([a-z]|` + letter + `)(-?` + idnUnit + `){0,7}`
	idnUnit = `([a-z0-9]|` + letter + `)`

	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4  = `(` + octet + `\.){3}` + octet
	h16   = `[0-9a-fA-F]{1,4}`
	ls32  = `(` + h16 + `:` + h16 + `|` + ipv4 + `)`
	ipv6  = `((` + h16 + `:){6}` + ls32 + `|::(` + h16 + `:){5}` + ls32 + `|(` + h16 + `)?::(` + h16 + `:){4}` + ls32 +
		`|((` + h16 + `:){0,1}` + h16 + `)?::(` + h16 + `:){3}` + ls32 + `|((` + h16 + `:){0,2}` + h16 + `)?::(` + h16 + `:){2}` + ls32 +
		`|((` + h16 + `:){0,3}` + h16 + `)?::` + h16 + `:` + ls32 + `|((` + h16 + `:){0,4}` + h16 + `)?::` + ls32 +
		`|((` + h16 + `:){0,5}` + h16 + `)?::` + h16 + `|((` + h16 + `:){0,6}` + h16 + `)?::)`

	scheme     = `[A-Za-z][A-Za-z0-9+.-]*:`
	unreserved = `A-Za-z0-9._~!$&'()*+,;=-`
	ucschar    = `\xA0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF`
	percent    = `%[0-9A-Fa-f]{2}`
	regname    = `([` + unreserved + `]|` + percent + `)`
	iregname   = `([` + ucschar + unreserved + `]|` + percent + `)`
	pchar      = `([:@` + unreserved + `]|` + percent + `)`
	ipchar     = `([:@` + ucschar + unreserved + `]|` + percent + `)`
	literal    = `\[` + ipv6 + `\]|`

	variable = `([A-Za-z0-9_]|` + percent + `)(\.?([A-Za-z0-9_]|` + percent + `)){0,31}(:[1-9]\d{0,3}|\*)?`
	pointer  = `(/([^~/]|~[01])*)*`

	// A subset of what ECMA-262 and other dialects read alike.
	term  = `(([A-Za-z0-9 _:;,@%&=<>"'~/!#-]|\.|\\[dDwWsS.*+?()\[\]{}|^$\\/]|\[\^?([A-Za-z0-9_ ]|a-z|A-Z|0-9|\\[dws]){1,16}\])` + times + `)`
	piece = `(` + term + `|\((\?:)?` + term + `+(\|` + term + `+)*\)` + times + `)`
	times = `([*+?]|\{[1-9]\d?\})?`
)

// authority returns the pattern of an authority with a path, whose host has the given
// characters.
func authority(name, literal string) string {
	return `//((` + name + `|:)*@)?(` + literal + name + `*)(:[0-9]{0,4})?`
}

// hierarchy returns the pattern of what follows a scheme and an authority, or another
// path.
func hierarchy(char string) string {
	return `(/` + char + `*)*|/(` + char + `+(/` + char + `*)*)?|` + char + `+(/` + char + `*)*|)` + tail(char)
}

func tail(char string) string {
	return `(\?(` + char + `|[/?])*)?(#(` + char + `|[/?])*)?`
}

// reference returns the pattern of an absolute or relative reference. The first segment
// of a relative path has no colon.
func reference(name, literal, char string) string {
	return `((` + scheme + `)?(` + authority(name, literal) + `(/` + char + `*)*|/(` + char + `+(/` + char + `*)*)?|)|` +
		scheme + char + `+(/` + char + `*)*|(` + name + `|@)+(/` + char + `*)*)` + tail(char)
}

// formatPattern returns the pattern of a known format.
func (w *schemaWriter) formatPattern(name string, narrow bool) *pattern {
	text := formats[name].pattern
	if narrow && formats[name].narrow != "" {
		text = formats[name].narrow
	}
	key := patternKey{"format " + text, false}
	p := w.patterns[key]
	if p == nil {
		var err error
		if p, err = readPattern(text, false); err != nil {
			panic("bug: format " + name + ": " + err.Error())
		}
		w.patterns[key] = p
	}
	return p
}
