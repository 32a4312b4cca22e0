//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// frequent words are single tokens in most vocabularies.
var frequent = strings.Fields("the of and to in is it that for was on with as be by at this have from or one had not but what all were when we there can")

// words returns a text of this many random words.
func words(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 3))
	list := make([]string, n)
	for i := range list {
		list[i] = frequent[rng.IntN(len(frequent))]
	}
	return strings.Join(list, " ")
}

// The request that the well-behaved client repeats.
const (
	clientPrompt = 30 // words
	clientTokens = 8
	clientPause  = 50 * time.Millisecond
)

// seen holds the observations of the well-behaved client; times are in
// milliseconds.
type seen struct {
	Whole  []float64 `json:"whole"`  // latency of each request
	First  []float64 `json:"first"`  // TTFT of every second request, which is streamed
	Failed []string  `json:"failed"` // statuses other than 200, and broken connections
}

// runClient is the subcommand `client`: a separate process, so that the load
// generator cannot delay its clock.
func runClient(args []string) error {
	f := flag.NewFlagSet("client", flag.ExitOnError)
	key := f.String("key", "", "")
	seconds := f.Float64("seconds", 1, "")
	least := f.Int("least", 1, "")
	wait := f.Duration("wait", time.Minute, "")
	url := f.String("url", "", "")
	f.Parse(args)
	runtime.LockOSThread()
	debug.SetGCPercent(1000)
	var out seen
	client := &http.Client{Timeout: *wait, Transport: &http.Transport{TLSClientConfig: anyCertificate(), ForceAttemptHTTP2: true}}
	start := time.Now()
	for i := uint64(0); ; i++ {
		took := time.Since(start).Seconds()
		if took > *seconds && (len(out.Whole)+len(out.Failed) >= *least || took > 3**seconds) {
			break
		}
		out.one(client, *url, *key, i)
		time.Sleep(clientPause)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// one sends one request and records the times.
func (s *seen) one(client *http.Client, url, key string, i uint64) {
	stream := i%2 == 1
	body, _ := json.Marshal(map[string]any{"prompt": words(clientPrompt, i+uint64(time.Now().UnixNano())), "max_tokens": clientTokens, "temperature": 0, "ignore_eos": true, "stream": stream})
	r, err := http.NewRequest(http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		s.Failed = append(s.Failed, err.Error())
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	begun := time.Now()
	answer, err := client.Do(r)
	if err != nil {
		s.Failed = append(s.Failed, err.Error())
		return
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	if stream {
		in.ReadSlice('\n')
		if answer.StatusCode == http.StatusOK {
			s.First = append(s.First, ms(time.Since(begun)))
		}
	}
	rest, err := io.ReadAll(in)
	switch {
	case err != nil:
		s.Failed = append(s.Failed, err.Error())
	case answer.StatusCode != http.StatusOK:
		s.Failed = append(s.Failed, fmt.Sprintf("status %d: %.120s", answer.StatusCode, rest))
	case stream && !bytes.Contains(rest, []byte("[DONE]")):
		s.Failed = append(s.Failed, fmt.Sprintf("the stream has no end: %.120s", rest[max(0, len(rest)-120):]))
	default:
		s.Whole = append(s.Whole, ms(time.Since(begun)))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// add appends the observations of another round.
func (s *seen) add(t seen) {
	s.Whole, s.First, s.Failed = append(s.Whole, t.Whole...), append(s.First, t.First...), append(s.Failed, t.Failed...)
}

// behave runs the client's process during a load.
func (o *options) behave(s *service) (seen, error) {
	key := goodKey
	if s.keyless {
		key = ""
	}
	self, err := os.Executable()
	if err != nil {
		return seen{}, err
	}
	c := exec.Command(self, "client", "-url", s.url(), "-key", key, "-seconds", fmt.Sprint(o.seconds), "-least", fmt.Sprint(o.least), "-wait", o.wait.String())
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return seen{}, err
	}
	var out seen
	return out, json.Unmarshal(text, &out)
}

// at returns a percentile by the nearest rank, or 0 without values.
func at(list []float64, p float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)-1, int(p*float64(len(list))))]
}
