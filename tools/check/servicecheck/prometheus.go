//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// checkPrometheus checks deploy/monitoring with Prometheus: its tool, and a scrape with
// a key.
func checkPrometheus(r *results, dir string, service *process) error {
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			fmt.Printf("not run: %s is not on this machine\n", program)
			return nil
		}
	}
	dir = filepath.Join(dir, "prometheus")
	if err := os.CopyFS(dir, os.DirFS("deploy/monitoring")); err != nil {
		return err
	}
	config := filepath.Join(dir, "prometheus.yml")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	changed, err := change(string(text), "127.0.0.1:8080", service.addr, "scrape_interval: 15s", "scrape_interval: 1s", "evaluation_interval: 15s", "evaluation_interval: 1s")
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(metricsKey+"\n"), 0o600); err != nil {
		return err
	}
	r.add("promtool: prometheus.yml and alerts.yml are valid", promtool(nil, "check", "config", "--lint=all", config))
	scrape, err := get("http://"+service.addr+"/metrics", metricsKey)
	if err != nil {
		return err
	}
	r.add("promtool: the scrape is valid", promtool(scrape, "check", "metrics"))
	addr := freeAddress()
	p, err := start(dir, "prometheus", addr, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	if err != nil {
		return err
	}
	defer p.stop()
	r.add("prometheus: scrapes the service with its key", scraped(p))
	r.add("prometheus: evaluates all alerts", evaluated(p))
	r.add("prometheus: answers all queries of the dashboard", queried(p, filepath.Join(dir, "dashboard.json")))
	return nil
}

func promtool(stdin []byte, args ...string) error {
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func get(address, key string) ([]byte, error) {
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// An answer is one of Prometheus' API.
type answer struct {
	Status, Error string
	Data          struct {
		Result []struct{ Value [2]any }
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
}

func (p *process) api(path string) (a answer, err error) {
	text, err := get("http://"+p.addr+"/api/v1/"+path, "")
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

func (p *process) query(expr string) (answer, error) {
	return p.api("query?query=" + url.QueryEscape(expr))
}

// until repeats a check every 100 ms, for at most 20 s, until it succeeds.
func until(check func() error) (err error) {
	for range 200 {
		if err = check(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func scraped(p *process) error {
	return until(func() error {
		a, err := p.query(`up{job="iflowc"}`)
		if err != nil || len(a.Data.Result) != 1 || a.Data.Result[0].Value[1] != "1" {
			return fmt.Errorf("up: %+v, %v", a, err)
		}
		return nil
	})
}

func evaluated(p *process) error {
	return until(func() error {
		a, err := p.api("rules")
		if err != nil || len(a.Data.Groups) != 1 || len(a.Data.Groups[0].Rules) == 0 {
			return fmt.Errorf("%+v, %v", a, err)
		}
		for _, rule := range a.Data.Groups[0].Rules {
			if rule.Health != "ok" {
				return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
		return nil
	})
}

// queried sends each query of a dashboard, with values for Grafana's variables.
func queried(p *process, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return err
	}
	values := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m")
	n := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			n++
			if a, err := p.query(values.Replace(target.Expr)); err != nil || a.Status != "success" {
				return fmt.Errorf("%s: %s %v", target.Expr, a.Error, err)
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("no queries")
	}
	return nil
}
