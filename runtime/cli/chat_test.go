//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/cli"
)

// lettersTemplate uses only letters that the fake tokenizer knows.
const lettersTemplate = "{% for m in messages %}{{ m.role[0] ~ m.content ~ '.' }}{% endfor %}{% if add_generation_prompt %}a{% endif %}"

// chat gives lines to the subcommand chat.
func (b *fakeBinary) chat(t *testing.T, input string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), b.Embedded, cli.Process{
		Args: append([]string{"chat", "--temp", "0"}, args...), Program: b.program, Start: time.Now(),
		Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// continuation is what generate says after a text.
func (b *fakeBinary) continuation(t *testing.T, prompt string, n string) string {
	t.Helper()
	var g struct {
		Text   string
		Tokens []int32
	}
	ids := b.tok.Encode(prompt, false)
	list, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	b.must(t, &g, "generate", "--ids", string(list), "-n", n, "--json")
	return g.Text
}

// TestChat: every turn's answer is what generate says after the rendered
// conversation, earlier answers included.
func TestChat(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	file := filepath.Join(t.TempDir(), "saved.json")
	code, stdout, stderr := b.chat(t, "Hello\nmore\\\nlines\n/save "+file+"\n/reset\nHello\n\n/quit\nnever\n", "--template", lettersTemplate, "-n", "9", "--system", "S")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	first := b.continuation(t, "sS.uHello.a", "9")
	second := b.continuation(t, "sS.uHello.a"+first+".umore\nlines.a", "9")
	if want := first + "\n" + second + "\n" + first + "\n"; stdout != want {
		t.Errorf("got  %q\nwant %q\n%s", stdout, want, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved []struct{ Role, Content string }
	if err := json.Unmarshal(data, &saved); err != nil || len(saved) != 5 || saved[4].Content != second || saved[0].Role != "system" {
		t.Errorf("saved %s (%v)", data, err)
	}
	code, stdout, _ = b.chat(t, "/load "+file+"\nx\n", "--template", lettersTemplate, "-n", "5")
	want := b.continuation(t, "sS.uHello.a"+first+".umore\nlines.a"+second+".ux.a", "5")
	if code != 0 || stdout != want+"\n" {
		t.Errorf("after /load: exit %d, %q, want %q", code, stdout, want)
	}
}

// TestChatCommands: a command that does not exist is an error and not a message, and
// ends a chat from a pipe; what only looks like a command is a message.
func TestChatCommands(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	file := filepath.Join(t.TempDir(), "saved.json")
	code, stdout, stderr := b.chat(t, "/etc/x\n /help\n//\n  \t\n/save "+file+"\n/hlep\nHello\n", "--template", lettersTemplate, "-n", "1")
	if code != 2 || !strings.Contains(stderr, "unknown command /hlep; did you mean /help?") || strings.Count(stdout, "\n") != 3 {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "saved 6 messages to "+file) {
		t.Errorf("/save says %s", stderr)
	}
	code, stdout, stderr = b.chat(t, "/help\n/save\n/load nothing.json\n/lora x\n/?\n/exit\n/never\n", "--template", lettersTemplate)
	if code != 0 || stdout != "" || strings.Count(stderr, "forget the conversation") != 2 || !strings.Contains(stderr, "file name after the command") || !strings.Contains(stderr, "no such file") || !strings.Contains(stderr, "there are no adapters") {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
}

// TestChatOverflow: turns that no longer fit are left out, and the user is
// told; a message that alone is too long is refused.
func TestChatOverflow(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	long := strings.Repeat("x", 200)
	code, stdout, stderr := b.chat(t, long+"\n"+long+"\n"+long+"\n", "--template", lettersTemplate, "-n", "4")
	if code != 0 || strings.Count(stdout, "\n") != 3 || !strings.Contains(stderr, "dropped its oldest 2 messages") {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
	code, _, stderr = b.chat(t, strings.Repeat("x", 600)+"\n", "--template", lettersTemplate)
	if code != 2 || !strings.Contains(stderr, "shorten the message") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestChatWrong: calls that cannot work say why.
func TestChatWrong(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "has no chat template"},
		{[]string{"--template", "nope"}, `no chat template is named "nope"; choose one of: simple`},
		{[]string{"--template", "{% if %}"}, "line 1"},
		{[]string{"--template", lettersTemplate, "--n=-1"}, "-n -1"},
		{[]string{"--template", "{nokey}{query}"}, "{nokey} is neither a key"},
		{[]string{"--template", "{{ raise_exception('not like this') }}"}, "not like this"},
	} {
		code, _, stderr := b.chat(t, "hi\n", c.args...)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d: %s; want %q", c.args, code, stderr, c.want)
		}
	}
}
