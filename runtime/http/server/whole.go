//go:build unix

package server

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// decodeJSON decodes a request. Some clients write whole numbers as 5.0 or 5e0, because
// their language has one type of numbers; if a number does not fit its field, decodeJSON
// decodes the request again without such fractions and exponents.
func decodeJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) || !strings.HasPrefix(kind.Value, "number") {
		return err
	}
	reflect.ValueOf(v).Elem().SetZero()
	return json.Unmarshal(wholeNumbers(data), v)
}

// wholeNumbers returns a JSON object in which the numbers of its keys, and of the objects
// and lists there, have no fraction or exponent if they are whole. Variables of the chat
// template stay as they are.
func wholeNumbers(data []byte) []byte {
	const deepest = 2
	var out []byte
	depth, top, key := 0, "", ""
	for i := 0; i < len(data); {
		from := i
		switch c := data[i]; {
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			i = min(i+1, len(data))
			key = string(data[from:i])
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == ':' && depth == 1:
			top = key
			i++
		case c == '-' || c >= '0' && c <= '9':
			for i < len(data) && strings.IndexByte("+-.eE0123456789", data[i]) >= 0 {
				i++
			}
			if depth <= deepest && top != `"chat_template_kwargs"` {
				out = append(out, whole(string(data[from:i]))...)
				continue
			}
		default:
			i++
		}
		out = append(out, data[from:i]...)
	}
	return out
}

// whole returns a number without fraction and exponent, if it is whole and exact as a
// double.
func whole(text string) string {
	const most = 1 << 53
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") || f != math.Trunc(f) || math.Abs(f) >= most {
		return text
	}
	return strconv.FormatInt(int64(f), 10)
}
