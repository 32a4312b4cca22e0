//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A chatCommand is a line that the chat executes.
type chatCommand struct {
	name, argument, help string
	do                   func(s *chatSession, argument string) error
}

// chatCommands lists the commands in the order of the help text.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"/help", "", "this text", (*chatSession).help},
		{"/reset", "", "forget the conversation", func(s *chatSession, _ string) error { s.reset(); return nil }},
		{"/system", "TEXT", "set the system message; without TEXT, remove it", func(s *chatSession, text string) error { s.system(text); return nil }},
		{"/lora", "NAME", "answer with another adapter of --lora; with none: /lora none", func(s *chatSession, name string) error { return s.m.useAdapter(name) }},
		{"/save", "FILE", "write the conversation to a JSON file", onFile((*chatSession).save)},
		{"/load", "FILE", "continue a saved conversation", onFile((*chatSession).load)},
		{"/quit", "", "leave", func(*chatSession, string) error { return errLeave }},
	}
}

// commandAliases are other names of commands.
var commandAliases = map[string]string{"/?": "/help", "/exit": "/quit"}

// errLeave ends the chat.
var errLeave = errors.New("leave")

// commandName matches the first word of a command. Paths and comments are
// messages.
var commandName = regexp.MustCompile(`^/(\?|[\pL\pN_-]+)$`)

// command runs a message that starts with a slash and a word. Other texts are
// messages to the model. It returns an error if there is no such command; one
// that fails says so, and the chat goes on.
func (s *chatSession) command(line string) (known bool, err error) {
	name, argument := line, ""
	if i := strings.IndexAny(line, " \t\n"); i >= 0 {
		name, argument = line[:i], strings.TrimSpace(line[i:])
	}
	if !commandName.MatchString(name) {
		return false, nil
	}
	if other, ok := commandAliases[name]; ok {
		name = other
	}
	var names []string
	for _, c := range chatCommands() {
		if c.name == name {
			err := c.do(s, argument)
			if err != nil && !errors.Is(err, errLeave) {
				s.notice("%v", err)
				err = nil
			}
			return true, err
		}
		names = append(names, c.name)
	}
	likely := ""
	if near := spelling.Nearest(name, names); near != "" {
		likely = fmt.Sprintf("did you mean %s? ", near)
	}
	return true, fmt.Errorf("unknown command %s; %s/help lists the commands; a space before the / makes it a message", name, likely)
}

// help prints the commands, and on a terminal the keys.
func (s *chatSession) help(string) error {
	for _, c := range chatCommands() {
		s.notice("%-15s %s", strings.TrimSpace(c.name+" "+c.argument), c.help)
	}
	s.notice("%s", `A \ at the end of a line continues the message.
Lines between two lines of """ are one message.
A space before a / makes it the beginning of a message.
Ctrl-C stops a response.`)
	if s.editing {
		s.notice("%s", editorHelp)
	}
	return nil
}

// onFile returns a command with the name of a file.
func onFile(do func(s *chatSession, name string) error) func(s *chatSession, name string) error {
	return func(s *chatSession, name string) error {
		if name == "" {
			return errors.New("expected a file name after the command")
		}
		return do(s, name)
	}
}

// maxConversation is the most bytes of a file of /load, and those of a template: a context
// of a million tokens has 4 MB.
const maxConversation = 8 << 20

// A savedMessage is a message in a file.
type savedMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (s *chatSession) save(name string) error {
	list := make([]savedMessage, len(s.messages))
	for i := range s.messages {
		list[i] = savedMessage{s.messages[i].Role, s.messages[i].Text()}
	}
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
		return err
	}
	if full, err := filepath.Abs(name); err == nil {
		name = full
	}
	s.notice("saved %s to %s", counted(len(list), "message"), name)
	return nil
}

func (s *chatSession) load(name string) error {
	data, err := regular.Read(name, maxConversation)
	if err != nil {
		return err
	}
	var list []savedMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s is not a saved conversation: %w", name, err)
	}
	s.messages = nil
	for _, m := range list {
		s.messages = append(s.messages, chat.Message{Role: m.Role, Content: m.Content})
	}
	s.notice("loaded %s from %s", counted(len(list), "message"), name)
	return nil
}

// counted returns a number with a noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
