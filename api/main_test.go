package api_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are cores, because most of them wait for disks, sockets and clocks. In
// CI, with campaigns of full size, they need the cores.
func TestMain(m *testing.M) {
	if os.Getenv("CI") == "" {
		_ = flag.Set("test.parallel", "6")
	}
	m.Run()
}
