//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxHistory is the size, in bytes, from which on only the newer half of the
// history is kept.
const maxHistory = 1 << 20

// A chatHistory is the file with the messages that the user typed in earlier
// chats, one a line, with marks in place of line breaks.
type chatHistory struct {
	file *os.File
	past []string
}

// historyFile returns the name of the file.
func historyFile() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) { // relative names count as unset
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "iflowc", "chat_history"), nil
}

// openHistory opens the history, or makes a new one. Only the user can read it.
func openHistory() (*chatHistory, error) {
	name, err := historyFile()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	h := &chatHistory{file: file}
	if err := errors.Join(file.Chmod(0o600), h.read(name)); err != nil {
		file.Close()
		return nil, err
	}
	return h, nil
}

// read reads the newest part of the history. A file that has become too large is
// replaced by that part.
func (h *chatHistory) read(name string) error {
	size, err := h.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	from := int64(0)
	if size > maxHistory {
		from = size - maxHistory/2
	}
	data, err := io.ReadAll(io.NewSectionReader(h.file, from, maxHistory))
	if err != nil {
		return err
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n")) // the rest of a line
		if err := h.replace(name, data); err != nil {
			return err
		}
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && utf8.ValidString(line) {
			h.past = append(h.past, oneLine(line))
		}
	}
	return nil
}

// replace replaces the file, so that other chats never see a part of it.
func (h *chatHistory) replace(name string, data []byte) error {
	next, err := os.CreateTemp(filepath.Dir(name), "chat_history*") // of mode 0600
	if err != nil {
		return err
	}
	if _, err = next.Write(data); err == nil {
		err = os.Rename(next.Name(), name)
	}
	if err != nil {
		next.Close()
		os.Remove(next.Name())
		return err
	}
	h.file.Close()
	h.file = next
	return nil
}

// add adds an entry. A chat goes on without history where it cannot be written.
func (h *chatHistory) add(entry string) { _, _ = h.file.WriteString(entry + "\n") }

func (h *chatHistory) close() { h.file.Close() }
