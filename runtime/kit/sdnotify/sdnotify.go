// Package sdnotify tells systemd the state of a service of Type=notify.
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"time"
)

// States of a service.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Send sends a state to the socket in NOTIFY_SOCKET; without one it does nothing.
func Send(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	c, err := net.Dial("unixgram", socket) // @NAME is an abstract socket
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	return err
}
