package loopback_test

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/loopback"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "a.localhost.": true, "127.0.0.1:80": true, "[::1]:80": true, "::ffff:127.0.0.9": true,
		"": false, "example.org": false, "localhost.example.org": false, "10.0.0.1": false, "127.0.0.1.example.org:80": false,
	} {
		if got := loopback.Host(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
