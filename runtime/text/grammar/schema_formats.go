package grammar

// formats are the patterns of the known formats (RFC 3339, 4122, 5321, 1123, 2673, 4291
// and 3986). Each pattern matches a regular subset of the format: every match is valid.
// Constraints that a pattern cannot express, such as the total length of a host name,
// make the subset smaller.
var formats = map[string]string{
	"date":      date,
	"time":      clock,
	"date-time": date + `T` + clock,
	"duration":  `P(` + digits9 + `W|(` + digits9 + `Y(` + digits9 + `M(` + digits9 + `D)?)?|` + digits9 + `M(` + digits9 + `D)?|` + digits9 + `D)(T` + span + `)?|T` + span + `)`,
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"email":     atom + `(\.?` + atom + `){0,31}@` + host,
	"hostname":  host,
	"ipv4":      `(` + octet + `\.){3}` + octet,
	"ipv6": `(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}` +
		`|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}` +
		`|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:))`,
	"uri": `[A-Za-z][A-Za-z0-9+.-]*:(//(` + userinfo + `*@)?` + regname + `*(:[0-9]{0,4})?(/` + pchar + `*)*|/(` + pchar + `+(/` + pchar + `*)*)?|` + pchar + `+(/` + pchar + `*)*|)` +
		`(\?(` + pchar + `|[/?])*)?(#(` + pchar + `|[/?])*)?`,
}

const (
	year  = `(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})`
	leap  = `(\d\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)`
	date  = `(` + year + `-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))|` + leap + `-02-29)`
	part9 = `(\.\d{1,9})?`
	clock = `(([01]\d|2[0-3]):[0-5]\d:[0-5]\d` + part9 + `(Z|[+-]([01]\d|2[0-3]):[0-5]\d)|23:59:60` + part9 + `(Z|\+00:00))` // a leap second is the last second of the day (UTC)

	digits9 = `\d{1,9}`
	span    = `(` + digits9 + `H(` + digits9 + `M(` + digits9 + `S)?)?|` + digits9 + `M(` + digits9 + `S)?|` + digits9 + `S)`

	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	atom  = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
	// Up to four labels of up to 61 characters, or eight of up to 29; at most 253 in
	// total. The last label is no number, so that a name is no IPv4 address (RFC 1123, 2.1).
	host  = `((` + label + `{0,30}\.){0,3}([A-Za-z]` + more + `{0,30}|` + numbered + more + `{0,25})|(` + label + `{0,14}\.){0,7}([A-Za-z]` + more + `{0,14}|` + numbered + more + `{0,9}))`
	label = `[A-Za-z0-9]` + more
	// In the last label: some digits and a character that makes it no number.
	numbered = `\d{1,9}([A-Za-z]|-[A-Za-z0-9])`
	more     = `(-?[A-Za-z0-9])`

	unreserved = `A-Za-z0-9._~!$&'()*+,;=-`
	percent    = `%[0-9A-Fa-f]{2}`
	regname    = `([` + unreserved + `]|` + percent + `)`
	userinfo   = `([:` + unreserved + `]|` + percent + `)`
	pchar      = `([:@` + unreserved + `]|` + percent + `)`
)

// formatPattern returns the pattern of a known format.
func (w *schemaWriter) formatPattern(name string) *pattern {
	key := patternKey{"format " + name, false}
	p := w.patterns[key]
	if p == nil {
		var err error
		if p, err = readPattern(formats[name], false); err != nil {
			panic("bug: format " + name + ": " + err.Error())
		}
		w.patterns[key] = p
	}
	return p
}
