//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// maxChatLine is the maximum length of a line of input.
const maxChatLine = 4 << 20

// A chatInput reads messages: lines, continued by a \ at the end, or lines
// between two lines of """.
type chatInput struct {
	lines chan string
	err   error // set when lines is closed
}

func newChatInput(r io.Reader) *chatInput {
	in := &chatInput{lines: make(chan string)}
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 64<<10), maxChatLine)
	go func() {
		defer close(in.lines)
		for scan.Scan() {
			in.lines <- message(scan)
		}
		if in.err = scan.Err(); errors.Is(in.err, bufio.ErrTooLong) {
			in.err = wrong(fmt.Errorf("a line is longer than %d bytes", maxChatLine))
		}
	}()
	return in
}

// message reads the rest of a message after its first line.
func message(scan *bufio.Scanner) string {
	line := scan.Text()
	if strings.TrimSpace(line) == `"""` {
		var block []string
		for scan.Scan() && strings.TrimSpace(scan.Text()) != `"""` {
			block = append(block, scan.Text())
		}
		return strings.Join(block, "\n")
	}
	for strings.HasSuffix(line, `\`) && scan.Scan() {
		line = strings.TrimSuffix(line, `\`) + "\n" + scan.Text()
	}
	return line
}

const chatHelp = `/help           this text
/reset          forget the conversation
/system TEXT    set the system message; without TEXT, remove it
/lora NAME      answer with another adapter of --lora; with none: /lora none
/save FILE      write the conversation to a JSON file
/load FILE      continue a saved conversation
/quit           leave
A \ at the end of a line continues the message; lines between two lines of """ are one message.
Ctrl-C stops a response.`

// command runs a line that starts with a slash. Other lines, and slashes
// without a known command, are messages.
func (s *chatSession) command(line string) (leave, known bool) {
	name, argument, _ := strings.Cut(line, " ")
	argument = strings.TrimSpace(argument)
	switch name {
	case "/help", "/?":
		s.notice("%s", chatHelp)
	case "/reset":
		s.reset()
	case "/system":
		s.system(argument)
	case "/lora":
		if err := s.m.useAdapter(argument); err != nil {
			s.notice("%v", err)
		}
	case "/save":
		s.file(argument, s.save)
	case "/load":
		s.file(argument, s.load)
	case "/quit", "/exit":
		return true, true
	default:
		return false, false
	}
	return false, true
}

// file runs a command on a file and reports errors, which do not end the chat.
func (s *chatSession) file(name string, do func(name string) error) {
	if name == "" {
		s.notice("expected a file name after the command")
		return
	}
	if err := do(name); err != nil {
		s.notice("%v", err)
	}
}

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
	return os.WriteFile(name, append(data, '\n'), 0o644)
}

func (s *chatSession) load(name string) error {
	data, err := os.ReadFile(name)
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
	s.notice("%d messages", len(list))
	return nil
}
