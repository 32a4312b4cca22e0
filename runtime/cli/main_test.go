package cli

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	probeBytes = 4 << 20
	os.Exit(m.Run())
}
