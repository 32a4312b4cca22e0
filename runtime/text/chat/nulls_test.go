package chat

import (
	"encoding/json"
	"testing"
)

// TestNullKeys checks that keys that are null, and empty lists, are not defined in a
// template, and that a template gets for a missing content what it can use.
func TestNullKeys(t *testing.T) {
	t.Parallel()
	const calls = `{% if m.tool_calls is defined %}{{ m.tool_calls[0].function.name }}({{ m.tool_calls[0].function.arguments | tojson }}){% endif %}`
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":null,"type":null,"function":{"name":"f","arguments":null}}]}`
	for _, c := range []struct{ template, message, want string }{
		{`{% for m in messages %}{{ m.content }}` + calls + `{% endfor %}`, call, `f({})`},
		{`{% for m in messages %}{{ m['content'] + '' }}` + calls + `{% endfor %}`, call, `f({})`},
		{`{% for m in messages %}{% if m.content is none %}` + calls + `{% else %}{{ m.content + '' }}{% endif %}{% endfor %}`, call, `f({})`},
		{`{% for m in messages %}{% for k in m %}{{ k }},{% endfor %}{% endfor %}`, `{"role":"assistant","content":"a","tool_calls":null,"name":null,"refusal":null,"annotations":[],"audio":null}`, `role,content,`},
		{`{% for m in messages %}{{ m.content }}` + calls + `{% endfor %}`, `{"role":"assistant","content":"a","tool_calls":[]}`, `a`},
	} {
		tmpl, err := Parse(c.template, SpecialTokens{})
		if err != nil {
			t.Fatal(err)
		}
		var m Message
		if err := json.Unmarshal([]byte(c.message), &m); err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render([]Message{m}, RenderOptions{}); got != c.want || err != nil {
			t.Errorf("%s, %s: %q, %v; want %q", c.template, c.message, got, err, c.want)
		}
	}
	const tool = `{"type":"function","strict":null,"function":{"name":"f","description":null,"parameters":{"default":null}}}`
	if got := string(WithoutNulls(json.RawMessage(tool), "function")); got != `{"type": "function", "function": {"name": "f", "parameters": {"default":null}}}` {
		t.Error(got)
	}
}
