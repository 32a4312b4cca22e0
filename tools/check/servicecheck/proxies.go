//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/iflowc/iflowc/tools/check/selfsigned"
)

// proxyHost is the name in the proxies' files.
const proxyHost = "chat.example.com"

// A proxy is a program with a file in deploy/proxy.
type proxy struct {
	name, file string
	// command returns the command for a file, at an address with a certificate. It writes
	// what the program needs beside the file into dir.
	command func(dir, text, addr string, cert selfsigned.Certificate) ([]string, error)
}

var proxies = []proxy{{"nginx", "nginx.conf", nginxCommand}, {"caddy", "Caddyfile", caddyCommand}}

// front starts a proxy with its file, changed by the given pairs, in front of a service.
func (p proxy) front(dir string, cert selfsigned.Certificate, service string, pairs ...string) (*process, error) {
	addr := freeAddress()
	dir = filepath.Join(dir, p.name+strings.TrimPrefix(addr, "127.0.0.1:"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join("deploy/proxy", p.file))
	if err != nil {
		return nil, err
	}
	changed, err := change(string(text), append(pairs, "127.0.0.1:8080", service)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	command, err := p.command(dir, changed, addr, cert)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	return start(dir, p.name, addr, command...)
}

// change replaces each first text of the pairs, which must be there once, by the second.
func change(text string, pairs ...string) (string, error) {
	for i := 0; i < len(pairs); i += 2 {
		if n := strings.Count(text, pairs[i]); n != 1 {
			return "", fmt.Errorf("%q is there %d times", pairs[i], n)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text, nil
}

func nginxCommand(dir, text, addr string, cert selfsigned.Certificate) ([]string, error) {
	text, err := change(text, "listen 443 ssl;", "listen "+addr+" ssl;", "listen [::]:443 ssl;", "",
		"/etc/ssl/"+proxyHost+".crt", cert.File, "/etc/ssl/private/"+proxyHost+".key", cert.KeyFile)
	if err != nil {
		return nil, err
	}
	main := "daemon off; master_process off; pid nginx.pid; events {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += kind + "_temp_path " + kind + ";\n"
	}
	path := filepath.Join(dir, "nginx.conf")
	return []string{"nginx", "-p", dir, "-e", "error.log", "-c", path}, os.WriteFile(path, []byte(main+text+"}\n"), 0o600)
}

func caddyCommand(dir, text, addr string, cert selfsigned.Certificate) ([]string, error) {
	_, port, _ := net.SplitHostPort(addr)
	text, err := change(text, "\n"+proxyHost+" {\n", "\n{\nadmin off\nauto_https disable_redirects\nhttps_port "+port+
		"\n}\n"+proxyHost+" {\nbind 127.0.0.1\ntls "+cert.File+" "+cert.KeyFile+"\n")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "Caddyfile")
	return []string{"caddy", "run", "--config", path, "--adapter", "caddyfile"}, os.WriteFile(path, []byte(text), 0o600)
}

// checkProxies checks each proxy in front of a service with keys and of one without.
func checkProxies(r *results, dir, bin string, keyed, open *process) error {
	cert, err := selfsigned.Write(dir, proxyHost)
	if err != nil {
		return err
	}
	relay, err := newRelay(open.addr)
	if err != nil {
		return err
	}
	defer relay.Close()
	for _, p := range proxies {
		if _, err := exec.LookPath(p.name); err != nil {
			fmt.Printf("not run: %s is not on this machine\n", p.name)
			continue
		}
		a, err := p.front(dir, cert, keyed.addr)
		if err != nil {
			return err
		}
		checkKeyed(r, newClient(p.name, a.addr, cert), keyed)
		a.stop()
		b, err := p.front(dir, cert, relay.addr)
		if err != nil {
			return err
		}
		checkOpen(r, newClient(p.name, b.addr, cert), relay)
		b.stop()
		if p.name == "nginx" {
			r.add("nginx: proxy_read_timeout is longer than --timeout, and is the timeout that applies", nginxTimeout(dir, bin, p, cert, relay))
		}
	}
	return nil
}

// nginxTimeout compares nginx' timeout with the default of serve, and checks that a
// shorter one ends a silent answer.
func nginxTimeout(dir, bin string, p proxy, cert selfsigned.Certificate, relay *relay) error {
	text, err := os.ReadFile("deploy/proxy/nginx.conf")
	if err != nil {
		return err
	}
	help, err := exec.Command(bin, "serve", "--help").Output()
	if err != nil {
		return err
	}
	limit := regexp.MustCompile(`proxy_read_timeout (\S+);`).FindSubmatch(text)
	longest := regexp.MustCompile(`--timeout=(\S+)`).FindSubmatch(help)
	if limit == nil || longest == nil {
		return fmt.Errorf("no proxy_read_timeout in the file, or no --timeout in the help")
	}
	at, err := time.ParseDuration(string(limit[1]))
	if err != nil {
		return err
	}
	if most, err := time.ParseDuration(string(longest[1])); err != nil || at <= most {
		return fmt.Errorf("proxy_read_timeout %v, --timeout %v (%v)", at, most, err)
	}
	short, err := p.front(dir, cert, relay.addr, string(limit[0]), "proxy_read_timeout 1s;")
	if err != nil {
		return err
	}
	defer short.stop()
	return newClient(p.name, short.addr, cert).expect(504, "", request{method: "GET", path: silentPath})
}
