//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// pings is the number of echo requests of Ping.
const pings = 15

// Ping returns the median time of a small packet from the first host to the second: half
// of the round trip. It includes what this program and the kernel add to the delay.
func (h *Hosts) Ping() (delay time.Duration, err error) {
	err = inNetwork(h.A.process.Process.Pid, func() error {
		delay, err = ping([4]byte{10, 77, 0, 2})
		return err
	})
	return delay, err
}

// inNetwork runs f in the network namespace of a process, on a thread that ends with it,
// because it stays in the namespace.
func inNetwork(pid int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		space, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(space, unix.CLONE_NEWNET)
			unix.Close(space)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// ping sends ICMP echo requests (RFC 792) one after another.
func ping(to [4]byte) (time.Duration, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(int64(2 * time.Second))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return 0, err
	}
	var times []time.Duration
	reply := make([]byte, 1500)
	for i := range uint16(pings) {
		request := []byte{8, 0, 0, 0, 0x1f, 0x10, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(request[6:], i)
		binary.BigEndian.PutUint16(request[2:], checksum(request))
		start := time.Now()
		if err := unix.Sendto(fd, request, 0, &unix.SockaddrInet4{Addr: to}); err != nil {
			return 0, err
		}
		for {
			n, _, err := unix.Recvfrom(fd, reply, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return 0, fmt.Errorf("no reply to a ping: %w", err)
			}
			if n == 20+len(request) && reply[20] == 0 && binary.BigEndian.Uint16(reply[26:]) == i {
				break
			}
		}
		times = append(times, time.Since(start)/2)
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// checksum is that of the internet protocols (RFC 1071).
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
