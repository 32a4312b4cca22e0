package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A reader sets what the value of a field says. The field is c.reading.
type reader = func(c *Config, v any) error

// value reads a number into a setting.
func value(name string, from, to float64) reader {
	return func(c *Config, v any) error {
		x, ok := v.(float64)
		if !ok || !(x >= from && x <= to) {
			return fmt.Errorf("%v: expected a number from %v to %v", v, from, to)
		}
		c.values[name], c.from[name] = x, c.reading
		return nil
	}
}

// whole reads a whole number into a setting.
func whole(name string, from, to float64) reader {
	read := value(name, from, to)
	return func(c *Config, v any) error {
		if x, ok := v.(float64); !ok || x != math.Trunc(x) {
			return fmt.Errorf("%v: expected a whole number", v)
		}
		return read(c, v)
	}
}

// flag reads true or false.
func flag(to func(c *Config) *bool) reader {
	return func(c *Config, v any) error {
		b, ok := v.(bool)
		if !ok {
			return errors.New("expected true or false")
		}
		*to(c) = b
		return nil
	}
}

// tokens reads a token id or a list of them.
func tokens(to func(c *Config) *[]int32) reader {
	return func(c *Config, v any) error {
		ids, err := idList(v)
		*to(c) = ids
		return err
	}
}

// forced reads tokens that leave no other choice, so the vocabulary must have them.
func forced(to func(c *Config) *[]int32) reader {
	return func(c *Config, v any) error {
		ids, err := idList(v)
		*to(c) = ids
		return cmp.Or(err, c.inVocabulary(ids))
	}
}

// inVocabulary returns an error for an id that the vocabulary does not have.
func (c *Config) inVocabulary(ids []int32) error {
	for _, id := range ids {
		if id < 0 || int(id) >= c.vocab {
			return fmt.Errorf("token id %d: the vocabulary has %d tokens", id, c.vocab)
		}
	}
	return nil
}

func idList(v any) (ids []int32, err error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		id, ok := x.(float64)
		if !ok || id != float64(int32(id)) {
			return nil, fmt.Errorf("%v: expected a token id or a list of them", x)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// readForceBOS reads the name that forced_bos_token_id had in config.json.
func (c *Config) readForceBOS(v any) error {
	if v == true && len(c.rules.ForcedBOS) == 0 && c.bos >= 0 {
		c.rules.ForcedBOS = []int32{int32(c.bos)}
	}
	return nil
}

// readMaxLength reads max_length. 20 is the default of transformers before version 5,
// which files have without anyone's choice; it would cut an answer to nothing.
func (c *Config) readMaxLength(v any) error {
	if v == 20.0 {
		c.unused = append(c.unused, "max_length 20 ("+c.where("max_length")+") is the old default of transformers and has no effect")
		return nil
	}
	return whole("max_length", 0, 1<<30)(c, v)
}

func (c *Config) readStopping(v any) error {
	switch v {
	case true:
		c.Stopping = decode.StopFull
	case "never":
		c.Stopping = decode.StopNever
	case false:
	default:
		return fmt.Errorf("%v: expected true, false or \"never\"", v)
	}
	return nil
}

func (c *Config) readStops(v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		text, ok := x.(string)
		if !ok || text == "" {
			return fmt.Errorf("%v: expected a text or a list of texts", x)
		}
		c.Stop = append(c.Stop, text)
	}
	return nil
}

func (c *Config) readBadWords(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v: expected a list of lists of token ids", v)
	}
	for _, x := range list {
		ids, err := idList(x)
		if err != nil || len(ids) == 0 {
			return fmt.Errorf("%v: expected a list of token ids", x)
		}
		c.rules.BadWords = append(c.rules.BadWords, ids)
	}
	return nil
}

func (c *Config) readDecay(v any) error {
	list, _ := v.([]any)
	start, factor := math.NaN(), math.NaN()
	if len(list) == 2 {
		if x, ok := list[0].(float64); ok {
			start = x
		}
		if x, ok := list[1].(float64); ok {
			factor = x
		}
	}
	if start != math.Trunc(start) || math.Abs(start) > 1<<30 || !(factor > 0) {
		return fmt.Errorf("%v: expected [start, factor], a whole number of tokens and a number above 0", v)
	}
	c.rules.Decay = decode.Decay{Start: int(start), Factor: factor}
	return nil
}

// readBiases reads a list of pairs of token ids and a number.
func (c *Config) readBiases(v any) error {
	wrong := fmt.Errorf("%v: expected a list of [[token ids], number]", v)
	list, _ := v.([]any)
	if len(list) == 0 {
		return wrong
	}
	for _, pair := range list {
		p, _ := pair.([]any)
		if len(p) != 2 {
			return wrong
		}
		x, ok := p[1].(float64)
		ids, err := idList(p[0])
		if !ok || err != nil || len(ids) == 0 {
			return wrong
		}
		if err := c.inVocabulary(ids); err != nil {
			return err
		}
		c.rules.SequenceBias = append(c.rules.SequenceBias, decode.Bias{Tokens: ids, Value: x})
	}
	return nil
}

// jsonValue returns a value as JSON has it: 0.95, not the float32 nearest to it. What
// JSON does not have, such as NaN, becomes text.
func jsonValue(v any) any {
	if _, err := json.Marshal(v); err != nil {
		return fmt.Sprint(v)
	}
	switch x := v.(type) {
	case float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
		return f
	case int, int8, int16, int32, int64, uint8, uint16, uint32, uint64:
		f, _ := strconv.ParseFloat(fmt.Sprint(x), 64)
		return f
	}
	return v
}
