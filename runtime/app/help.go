//go:build unix

package app

// Examples that --help shows below a verb's flags.

// Help shows the usual calls.
func (generateCmd) Help() string {
	return `Examples:

  generate -p "Once upon a time" -n 40
  generate -f prompt.txt --temp 0.8 --top-p 0.95 --seed 7
  generate -p "Once" -n 8 --json
  generate -p "Once" --trace trace.json       what every thread did, for Perfetto`
}

// Help shows how a service is started and asked.
func (serveCmd) Help() string {
	return `Examples:

  serve                                       on this machine's port 8080; a chat page at /
  serve --host 0.0.0.0 --api-key-file keys    for others, who need a key
  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'`
}
