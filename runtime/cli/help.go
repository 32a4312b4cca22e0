//go:build unix

package cli

// Examples that --help shows below a subcommand's flags.

// Help shows the usual calls.
func (generateCmd) Help() string {
	return `Examples:

  generate -p "Once upon a time" -n 40
  generate -f prompt.txt --temp 0.8 --top-p 0.95 --seed 7
  generate -p "Once" -n 8 --json
  generate -p "Once" --trace trace.json       a trace for Perfetto`
}

// Help shows that messages may come from a pipe.
func (chatCmd) Help() string {
	return `Examples:

  chat                                        until the input ends or /quit
  chat --system "Answer in one sentence." --temp 0
  echo "Why is the sky blue?" | ./model chat

On a terminal, the line can be edited, Up brings back earlier messages, a pasted
text is one message, and Ctrl-C stops a response. /help lists commands and keys.

Without a terminal, each line of the input is one message of the conversation;
lines between two lines of """ are one message. A line that begins with a slash
and a word is a command there too; one that does not exist ends the chat.`
}

// Help shows measurements of a model.
func (benchCmd) Help() string {
	return `Examples:

  bench                                       prefill of 512 tokens, decode of 128
  bench --batch 1,8,32 --plot speed.svg       at several batch sizes
  bench --per-op --prompt 0                   time per op of a decode step
  bench --against ./other                     interleaved with another binary`
}

// Help shows measurements of a server.
func (benchServeCmd) Help() string {
	return `Examples:

  bench serve --concurrency 16 --requests 200
  bench serve --url http://host:8000 --name model --rate 4 --plot latency.svg`
}

// Help shows calibration with and without Hessians.
func (calibrateCmd) Help() string {
	return `Examples:

  calibrate text.txt -o model.importance      for quantizing by iflowc compile
  calibrate text.txt --no-hessians            without GPTQ error compensation`
}

// Help shows a whole and a short measurement.
func (tuneCmd) Help() string {
	return `Examples:

  tune                                        1 minute; later starts use the profile
  tune --rows 1-8 --budget 10s                for one sequence with draft tokens`
}

// Help shows how a server is started and called.
func (serveCmd) Help() string {
	return `Examples:

  serve                                       on 127.0.0.1:8080, with a chat page at /
  serve --host 0.0.0.0 --api-key-file keys    for other machines, with API keys
  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'`
}
