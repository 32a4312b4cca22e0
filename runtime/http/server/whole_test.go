//go:build unix

package server

import "testing"

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":5.0,"b":{"c":1e2,"d":[2.0]},"e":[3.0,-4.0E0]}`:  `{"a":5,"b":{"c":100,"d":[2.0]},"e":[3,-4]}`,
		`{"a":0.5,"b":1e300,"c":1e-3,"d":"5.0 \" 6.0","e":7}`: `{"a":0.5,"b":1e300,"c":1e-3,"d":"5.0 \" 6.0","e":7}`,
		`{"chat_template_kwargs":{"a":1.0},"b":1.0}`:          `{"chat_template_kwargs":{"a":1.0},"b":1}`,
		`{"a":9007199254740993.0,"b":-0.0,"c":`:               `{"a":9007199254740993.0,"b":0,"c":`,
		`"\`:                                                  `"\`,
	} {
		if got := string(wholeNumbers([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	var v struct {
		N    *int    `json:"n"`
		List prompts `json:"list"`
	}
	if err := decodeJSON([]byte(`{"list":["a"],"n":3.0}`), &v); err != nil || *v.N != 3 || len(v.List) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := decodeJSON([]byte(`{"n":3.5}`), &v); err == nil {
		t.Error("3.5 is accepted")
	}
}
