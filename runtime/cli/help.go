//go:build unix

package cli

// Examples that --help shows below a subcommand's flags.

// Help shows the usual calls.
func (generateCmd) Help() string {
	return `Examples:

  generate -p "Once upon a time" -n 40
  generate -f prompt.txt --temp 0.8 --top-p 0.95 --seed 7
  generate -p "Once" -n 8 --json
  generate -p "Once" --trace trace.json       what every thread did, for Perfetto`
}

// Help shows that questions may come from a pipe.
func (chatCmd) Help() string {
	return `Examples:

  chat                                        asks and answers until the input ends
  chat --system "Answer in one sentence." --temp 0
  echo "Why is the sky blue?" | ./model chat`
}

// Help shows what is measured of a model.
func (benchCmd) Help() string {
	return `Examples:

  bench                                       prompts of 512 tokens, answers of 128
  bench --batch 1,8,32 --plot speed.svg       of several sequences at once
  bench --profile --prompt 0                  where the time of a step goes
  bench --against ./other                     another binary, in turns`
}

// Help shows what is measured of a service.
func (benchServeCmd) Help() string {
	return `Examples:

  bench serve --concurrency 16 --requests 200
  bench serve --url http://host:8000 --name model --rate 4 --plot latency.svg`
}

// Help shows both uses of a text.
func (calibrateCmd) Help() string {
	return `Examples:

  calibrate text.txt -o model.importance      for iflowc compile and its flag of that name
  calibrate text.txt --feedback               later columns make up for the rounding of earlier ones`
}

// Help shows the short way and the slow one.
func (tuneCmd) Help() string {
	return `Examples:

  tune                                        a minute; the next start uses what it found
  tune --rows 1-8 --budget 10s                for one sequence and its drafts`
}

// Help shows how a service is started and asked.
func (serveCmd) Help() string {
	return `Examples:

  serve                                       on this machine's port 8080; a chat page at /
  serve --host 0.0.0.0 --api-key-file keys    for others, who need a key
  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'`
}
