//go:build unix

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/runtime/kit/loopback"
)

// The parts of the report: page.html has a place for each of the others.
//
//go:embed view
var viewFiles embed.FS

type viewCmd struct {
	modelFlags
	Out   string `short:"o" help:"Write the report to this file instead of serving it." type:"path" placeholder:"FILE"`
	Port  int    `help:"Port of the server (default: a free port)." placeholder:"N"`
	Rank  int    `help:"Rank of the program to show, with --devices (default 0)." placeholder:"N"`
	Trace string `help:"Trace file written by the binary's --trace, for the Profile tab." type:"path" placeholder:"FILE"`
}

// Run serves an HTML report of a model's compilation.
func (c *viewCmd) Run(ctx context.Context) error {
	if c.Port < 0 || c.Port > 65535 {
		return usageError{fmt.Errorf("--port %d: expected a number up to 65535", c.Port)}
	}
	if c.Out != "" {
		if err := destination.Check("-o", c.Out); err != nil {
			return usageError{err}
		}
	}
	d, err := c.viewOf(ctx)
	if err != nil {
		return err
	}
	if c.Trace != "" {
		if err := d.trace(c.Trace); err != nil {
			return err
		}
	}
	page, err := viewPage(d)
	if err != nil {
		return err
	}
	if c.Out != "" {
		return toolchain.WriteFile(c.Out, page, 0o644)
	}
	return c.serve(ctx, page)
}

// viewPage joins the parts and the data into one file that loads nothing else.
func viewPage(d *viewData) ([]byte, error) {
	data, err := json.Marshal(d) // escapes <: text of a model cannot end the script
	if err != nil {
		return nil, err
	}
	page, err := viewFiles.ReadFile("view/page.html")
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"style.css", "draw.js", "partition.js", "page.js"} {
		text, err := viewFiles.ReadFile("view/" + part)
		if err != nil {
			return nil, err
		}
		page = bytes.Replace(page, []byte("{{"+part+"}}"), text, 1)
	}
	return bytes.Replace(page, []byte("{{data}}"), data, 1), nil
}

// serve serves the page on the loopback interface until ctx is canceled.
func (c *viewCmd) serve(ctx context.Context, page []byte) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
	if err != nil {
		return usageError{err}
	}
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: viewHandler(page)}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	fmt.Fprintf(os.Stderr, "http://%s (press Ctrl-C to stop)\n", l.Addr())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// viewHandler serves the page under the names of this machine only: a page of another origin
// could otherwise read it after its name was resolved to 127.0.0.1.
func viewHandler(page []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !loopback.Host(r.Host):
			http.Error(w, "this page is served under localhost only", http.StatusForbidden)
		case r.URL.Path != "/":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'")
			_, _ = w.Write(page) // the browser has disconnected: no error to report
		}
	})
}
