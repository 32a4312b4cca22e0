package chat

import "strings"

// KnownRoles returns messages with roles that the template knows. If it does not
// mention the role developer, such messages become system messages. If it renders no
// system messages, their text is put in front of the next user message's, or becomes a
// user message if none follows.
func (t *Template) KnownRoles(messages []Message) []Message {
	renames, moves := !strings.Contains(t.source, "developer"), !t.system
	known := make([]Message, 0, len(messages))
	var pending []string // text of system messages
	path := ""           // of the first of them
	for _, m := range messages {
		if renames && m.Role == "developer" {
			m.Role = "system"
		}
		switch {
		case moves && m.Role == "system":
			if len(pending) == 0 {
				path = m.Path
			}
			pending = append(pending, m.Text())
			continue
		case len(pending) > 0 && m.Role == "user":
			m.Content = strings.Join(append(pending, m.Text()), "\n\n")
			pending = nil
		}
		known = append(known, m)
	}
	if len(pending) > 0 { // no user message follows
		known = append(known, Message{Role: "user", Content: strings.Join(pending, "\n\n"), Path: path})
	}
	return known
}
