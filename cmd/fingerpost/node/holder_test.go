package node

import (
	"os"
	"strings"
	"testing"
)

// TestHolderName: the lease, which edges read, tells neither the machine's name nor the data folder, and two folders have
// two names.
func TestHolderName(t *testing.T) {
	t.Parallel()
	a, again, b := holderName("/var/lib/fingerpost"), holderName("/var/lib/fingerpost"), holderName("/var/lib/other")
	host, _ := os.Hostname()
	if a != again || a == b || strings.Contains(a, "lib") || host != "" && strings.Contains(a, host) {
		t.Errorf("%s, %s, %s", a, again, b)
	}
}
