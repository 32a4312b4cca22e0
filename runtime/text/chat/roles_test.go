package chat

import "testing"

// TestKnownRoles checks that no text of a system message is lost.
func TestKnownRoles(t *testing.T) {
	t.Parallel()
	const loop = `{% for m in messages %}{{ m.role }}:{{ m.content }}|{% endfor %}`
	const without = `{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}:{{ m.content }}|{% endif %}{% endfor %}`
	messages := []Message{{Role: "developer", Content: "a"}, {Role: "user", Content: "b"}, {Role: "system", Content: "c"}}
	for source, want := range map[string]string{
		loop:                        "system:a|user:b|system:c|",
		loop + "{# developer #}":    "developer:a|user:b|system:c|",
		without:                     "user:a\n\nb|user:c|",
		without + "{# developer #}": "developer:a|user:b|user:c|",
	} {
		template, err := Parse(source, SpecialTokens{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.Render(template.KnownRoles(messages), RenderOptions{})
		if err != nil || got != want {
			t.Errorf("%s: %v, %q, expected %q", source, err, got, want)
		}
	}
}
