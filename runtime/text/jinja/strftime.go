package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts maps directives of strftime to layouts of package time.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan",
	'd': "02", 'm': "01", 'y': "06", 'Y': "2006", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
	'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM",
	'e': "_2", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime formats a time like C's strftime in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		unpadded := format[i] == '-' && i+1 < len(format)
		if unpadded {
			i++
		}
		text, ok := directive(t, format[i])
		if !ok {
			text = "%" + format[i:i+1]
		}
		if unpadded {
			if short := strings.TrimLeft(text, "0 "); short != "" {
				text = short
			} else {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

func directive(t time.Time, c byte) (string, bool) {
	if layout, ok := layouts[c]; ok {
		return t.Format(layout), true
	}
	day := int(t.Weekday())
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'w':
		return strconv.Itoa(day), true
	case 'u':
		return strconv.Itoa((day+6)%7 + 1), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-day)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(day+6)%7)/7), true
	case 'V':
		_, week := t.ISOWeek()
		return fmt.Sprintf("%02d", week), true
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.Itoa(year), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'z', 'Z':
		return "", true // %z and %Z are empty for a time without a zone, such as datetime.now()
	}
	return "", false
}
