package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal on which a program runs as its session's
// leader.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	shown  strings.Builder
	before *unix.Termios // its settings
}

// onTerminal starts a program on a terminal of its own.
func onTerminal(t *testing.T, program string, args ...string) *terminal {
	t.Helper()
	return onTerminalWith(t, t.TempDir(), program, args...)
}

// onTerminalWith is onTerminal with a folder for the program's history.
func onTerminalWith(t *testing.T, state, program string, args ...string) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "XDG_STATE_HOME="+state)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, master: master, cmd: cmd, before: before}
}

// await reads until the terminal has shown the text once more.
func (c *terminal) await(text string) {
	c.t.Helper()
	if err := c.master.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	seen := c.shown.Len()
	for b := make([]byte, 4096); !strings.Contains(c.shown.String()[seen:], text); {
		n, err := c.master.Read(b)
		c.shown.Write(b[:n])
		if err != nil {
			c.t.Fatalf("no %q on the terminal: %v, %q", text, err, c.shown.String())
		}
	}
}

func (c *terminal) enter(text string) {
	c.t.Helper()
	if _, err := c.master.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// restored checks that the settings are as they were.
func (c *terminal) restored() {
	c.t.Helper()
	after, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	if !reflect.DeepEqual(after, c.before) {
		c.t.Errorf("the terminal's settings were %+v and are %+v", c.before, after)
	}
}

// ends waits for the program's end and checks its exit code.
func (c *terminal) ends(want int) {
	c.t.Helper()
	late := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	_ = c.cmd.Wait() // its exit code is what counts
	if got := c.cmd.ProcessState.ExitCode(); got != want {
		c.t.Errorf("exit %d, want %d; the terminal shows %q", got, want, c.shown.String())
	}
}

// TestChatSignals: a chat on a terminal ends at the first SIGTERM, at the prompt
// and within an answer, and at the second Ctrl-C; the terminal is as it was.
func TestChatSignals(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	for _, c := range []struct {
		name   string
		answer bool // in the middle of one
		signal func(*terminal)
		want   int
	}{
		{"SIGTERM at the prompt", false, terminate, 143},
		{"SIGTERM within an answer", true, terminate, 143},
		{"Ctrl-C twice at the prompt", false, func(c *terminal) {
			c.enter("\x03")
			c.await("another Ctrl-C or /quit leaves")
			c.enter("\x03")
		}, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			term := onTerminal(t, bin, "chat", "--temp", "5", "--seed", "1", "-n", "0")
			term.await("> ")
			if c.answer {
				term.enter("hello\r")
				term.await("\r\n")
			}
			c.signal(term)
			term.ends(c.want)
			term.restored()
		})
	}
}

// TestChatEditing: a message can be edited, a pasted text and lines of Alt-Enter are
// one message, the next chat knows them, Ctrl-C stops an answer and nothing else, and
// a command that does not exist is an error.
func TestChatEditing(t *testing.T) {
	t.Parallel()
	bin, dir := demo(t), t.TempDir()
	first := filepath.Join(dir, "first.json")
	chat := onTerminalWith(t, dir, bin, "chat", "--temp", "0", "-n", "2")
	for _, keys := range []string{
		"Helo\x1b[Dl\r",
		"\x1b[200~one\r\ttwo\r\x1b[201~\r",
		"a\x1b\rb\r",
		"日本語\x7f\r",
		"\x1b[200~" + strings.Repeat("many lines\r", 1000) + "\x1b[201~",
	} {
		chat.await("\n> ")
		chat.enter(keys)
	}
	chat.await("[pasted text 1: 1000 lines]")
	chat.enter("\x03") // discards it
	chat.await("\n> ")
	for _, c := range [][2]string{
		{"/hepl\r", "unknown command /hepl; did you mean /help?"},
		{"/he\t\r", "/save FILE "},
		{"/save " + first + "\r", "saved 8 messages to " + first},
	} {
		chat.enter(c[0])
		chat.await(c[1])
	}
	chat.enter("\x04")
	chat.ends(0)
	chat.restored()
	if got, want := asked(t, first), []string{"Hello", "one\n\ttwo", "a\nb", "日本"}; !slices.Equal(got, want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "iflowc", "chat_history")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}

	second := filepath.Join(dir, "second.json")
	chat = onTerminalWith(t, dir, bin, "chat", "--temp", "5", "--seed", "1", "-n", "0", "--no-history")
	chat.await("> ")
	chat.enter("\x1b[Akept nowhere\r")
	chat.await("\r\n")
	chat.enter("\x03")
	chat.await("\n> ")
	chat.enter("/save " + second + "\r")
	chat.await("saved 2 messages")
	chat.enter("\x03")
	chat.await("another Ctrl-C")
	chat.enter("\x03")
	chat.ends(130)
	if got := asked(t, second); !slices.Equal(got, []string{"kept nowhere"}) {
		t.Errorf("without a history comes %q", got)
	}

	chat = onTerminalWith(t, dir, bin, "chat")
	chat.await("> ")
	chat.enter(strings.Repeat("\x1b[A", 5)) // /save, /help, /hepl, 日本
	chat.await("a␤b")
	terminate(chat)
	chat.ends(143)
}

// asked returns the user's messages of a saved conversation.
func asked(t *testing.T, file string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var messages []struct{ Role, Content string }
	if err := json.Unmarshal(data, &messages); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if m.Role == "user" {
			list = append(list, m.Content)
		}
	}
	return list
}

func terminate(c *terminal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
}

// TestTerminated: SIGTERM ends a subcommand's work with 143, Ctrl-C with 130.
func TestTerminated(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			// On a busy machine the signal may come before the program handles
			// it; the signal itself ends the process then.
			got := -1
			for after := 300 * time.Millisecond; got == -1 && after < 20*time.Second; after *= 2 {
				got = signalled(t, bin, sig, after)
			}
			if got != want {
				t.Errorf("exit %d, want %d", got, want)
			}
		})
	}
}

// signalled starts long work, sends a signal a while later, and gives the exit
// code: -1 where the signal itself ended the process.
func signalled(t *testing.T, bin string, sig syscall.Signal, after time.Duration) int {
	t.Helper()
	cmd := exec.Command(bin, "bench", "--reps", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is what counts
	return cmd.ProcessState.ExitCode()
}
