//go:build linux

// Command attack runs a per-model binary's service under attack, beside a
// client that behaves well, and says whether that client noticed:
//
//	go run ./tools/check/attack -bin BINARY [-only REGEXP] [-seconds N] [-rounds N] [-json] [-short] [-list]
//
// For each attack there is an ordinary load of equal size: as many requests at
// once of about as many tokens, from the same attacker. Each is measured
// against a fresh service. The client's median under attack may be at most twice,
// its p99 at most five times that under the ordinary load.
//
// The client is a process of its own. Service, client and attacker share the
// machine. The attacker sends from 127.0.0.2 with a key of its own.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/bytesize"
)

// options are the flags.
type options struct {
	bin, flags, scratch string
	only                *regexp.Regexp
	seconds             float64
	rounds, least       int
	p50, p99            float64       // allowed ratios
	floor50, floor99    float64       // ms that are allowed in any case
	wait                time.Duration // how long the client waits for an answer
	settle              time.Duration // most time to come to rest
	fresh               time.Duration // how long a measured ordinary load counts
	kill                float64       // MB at which the watchdog ends a service
	again               bool          // a failure counts if it repeats
	json                bool
	limit               limit
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("attack: ")
	if len(os.Args) > 1 && os.Args[1] == "client" {
		if err := runClient(os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	// The kernel ends a service with the thread that started it.
	runtime.LockOSThread()
	// Bodies are built once and kept: collecting them would cost the CPU that is measured.
	debug.SetGCPercent(400)
	o, list, err := readFlags()
	if err != nil {
		log.Fatal(err)
	}
	if list {
		for _, a := range attacks() {
			fmt.Printf("%-24s %s\n%24s %s; compared with %v\n", a.name, a.sends, "", a.size(), a.like)
		}
		return
	}
	if o.scratch, err = os.MkdirTemp("", "attack"); err != nil {
		log.Fatal(err)
	}
	o.limit.create()
	failed, err := o.all()
	os.RemoveAll(o.scratch)
	o.limit.remove()
	if err != nil {
		log.Fatal(err)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// readFlags returns the options, and whether to list the attacks.
func readFlags() (o options, list bool, err error) {
	only := flag.String("only", "", "run attacks whose names match this pattern")
	short := flag.Bool("short", false, "run each attack for a moment, with wide limits, as CI does")
	flag.TextVar((*bytesize.Size)(&o.limit.bytes), "memory", bytesize.Size(0), "memory of a service, such as 512Mi: in a cgroup, else by its flag --memory")
	flag.BoolVar(&list, "list", false, "list the attacks")
	flag.StringVar(&o.bin, "bin", "", "per-model binary")
	flag.StringVar(&o.flags, "flags", "", "more flags of serve")
	flag.Float64Var(&o.seconds, "seconds", 20, "seconds of each attack and round")
	flag.IntVar(&o.rounds, "rounds", 1, "how often everything is measured; times of all rounds count together")
	flag.IntVar(&o.least, "least", 20, "fewest requests of the client in a measurement, which may take three times as long for it")
	flag.Float64Var(&o.p50, "p50", 2, "allowed ratio of the client's medians")
	flag.Float64Var(&o.p99, "p99", 5, "allowed ratio of the client's p99s")
	flag.Float64Var(&o.kill, "kill", 6000, "MB of memory at which a service is killed")
	flag.DurationVar(&o.wait, "wait", 30*time.Second, "how long the client waits for an answer")
	flag.DurationVar(&o.settle, "settle", 15*time.Second, "how long the service may take to come to rest after an attack")
	flag.BoolVar(&o.json, "json", false, "print JSON, one line an attack")
	flag.Parse()
	o.fresh = 2 * time.Minute
	if *short {
		o.seconds, o.least, o.p50, o.p99, o.floor50, o.floor99 = 0.25, 3, 20, 20, 2000, 4000
		o.wait, o.settle, o.fresh = 10*time.Second, 5*time.Second, time.Hour
		o.again = true // a moment beside other programs says little
	}
	o.only, err = regexp.Compile(*only)
	return o, list, err
}

// line writes a result as JSON.
func line(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		log.Fatal(err)
	}
}
