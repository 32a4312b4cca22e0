//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"
)

// clockAttacks change the wall clock under a running service.
func clockAttacks() []attack {
	if !canSetClock {
		log.Print("clock-jumps needs amd64 and is left out")
		return nil
	}
	return []attack{{name: "clock-jumps", sends: "short requests, while the wall clock jumps by hours and years", workers: 4, pause: refused, like: ordinary{4, 128, 32},
		flags: []string{"--requests-per-minute", "6000"}, during: jumps, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(32), "ignore_eos": true, "stream": true}))
		}}}
}

// leaps are the offsets of the wall clock, one after another.
var leaps = []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, 0, 80 * 365 * 24 * time.Hour, time.Second, -time.Second}

// jumps sets the wall clock of a service again and again, until the returned function is
// called. What the service has stored must outlive the jumps.
func jumps(s *service) (stop func() error, err error) {
	c, err := openClock(s.cmd.Process.Pid)
	if err != nil {
		return nil, fmt.Errorf("the clock of the service cannot be set: %w", err)
	}
	text, err := s.ask(http.MethodPost, "/v1/responses", goodKey, obj{"input": "a", "max_output_tokens": 1})
	var stored struct{ ID string }
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err == nil {
		err = s.checkClock(c)
	}
	if err != nil {
		return nil, err
	}
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				ended <- c.set(365 * 24 * time.Hour)
				return
			case <-time.After(20 * time.Millisecond):
				if err := c.set(leaps[i%len(leaps)]); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	return func() error {
		close(end)
		if err := <-ended; err != nil {
			return err
		}
		if _, err := s.get("/v1/responses/" + stored.ID); err != nil {
			return fmt.Errorf("a stored response after a year of the wall clock: %w", err)
		}
		return nil
	}, nil
}

// checkClock checks that the service sees the wall clock that is set.
func (s *service) checkClock(c *clock) error {
	if err := c.set(10 * 365 * 24 * time.Hour); err != nil {
		return err
	}
	answer, err := askClient.Get(s.url() + "/health")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if ahead := time.Until(date); err != nil || ahead < 9*365*24*time.Hour {
		return fmt.Errorf("the service's clock was set ten years ahead, and is %v ahead (%v)", ahead, err)
	}
	return nil
}
