//go:build unix

package server

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A coding is a content coding of request bodies.
type coding struct {
	names  []string
	memory int64 // bytes of a decoder
	open   func(data *bufio.Reader) (io.ReadCloser, error)
}

// maxWindow bounds the window of zstd: RFC 8878 recommends that decoders support 8 MB,
// and its levels 1 to 19 need no more.
const maxWindow = 8 << 20

// codings lists the content codings. The first name of each is listed for clients.
func codings() []*coding {
	return []*coding{
		{[]string{"gzip", "x-gzip"}, 64 << 10, openGzip}, {[]string{"deflate"}, 64 << 10, openDeflate}, {[]string{"zstd"}, 2 * maxWindow, openZstd},
	}
}

func openGzip(data *bufio.Reader) (io.ReadCloser, error) { return gzip.NewReader(data) }

// openDeflate decodes zlib data, or DEFLATE data without zlib's header, which some
// clients send.
func openDeflate(data *bufio.Reader) (io.ReadCloser, error) {
	if h, err := data.Peek(2); err == nil && h[0]&15 == 8 && (int(h[0])<<8|int(h[1]))%31 == 0 {
		return zlib.NewReader(data)
	}
	return flate.NewReader(data), nil
}

func openZstd(data *bufio.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(data, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// codingOf returns the content coding of a request's body; nil: none.
func codingOf(r *http.Request) (*coding, error) {
	header := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	name := strings.ToLower(strings.TrimSpace(header))
	if name == "" || name == "identity" {
		return nil, nil
	}
	var list []string
	for _, c := range codings() {
		if slices.Contains(c.names, name) {
			return c, nil
		}
		list = append(list, c.names[0])
	}
	e := invalid("", "Content-Encoding: %.80q is not supported; compress the body once, with %s, or send it as it is", header, strings.Join(list, " or ")).withCode("unsupported_content_encoding")
	e.status, e.codings = http.StatusUnsupportedMediaType, strings.Join(list, ", ")
	return nil, e
}

// decoded decodes a body within the client's CPU time. The limit of bodies applies to
// the decoded bytes too, so a small body cannot fill the memory.
func (s *Server) decoded(r *http.Request, c *coding, data []byte) (out []byte, err error) {
	if err := s.take(r, "", c.memory); err != nil {
		return nil, err
	}
	defer s.giveBack(r, c.memory)
	broken := func(err error) error {
		return invalid("", "the request's body is not valid %s, which the header Content-Encoding says it is: %v", c.names[0], err)
	}
	err = s.work(r, func(tick func() error) error {
		body, err := c.open(bufio.NewReader(ticking{bytes.NewReader(data), tick}))
		if err != nil {
			return broken(err)
		}
		defer body.Close()
		out, err = s.readAll(r, http.MaxBytesReader(nil, reading{body, broken}, s.cfg.Body), tick)
		return err
	})
	return out, err
}

// ticking is compressed data. It calls tick as it is read, because much of it may decode
// to nothing.
type ticking struct {
	io.Reader
	tick func() error
}

func (t ticking) Read(p []byte) (int, error) {
	if err := t.tick(); err != nil {
		return 0, err
	}
	return t.Reader.Read(p)
}

// reading is a body whose errors are those of its coding.
type reading struct {
	io.ReadCloser
	broken func(error) error
}

func (b reading) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.broken(err)
	}
	return n, err
}
