package testrig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePort returns a loopback port for a program that cannot be told to choose one, or at which nothing shall listen. It
// lies below those that the system gives to others who ask for any port (32768 and above on Linux): such a port would
// soon be another test's.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port in 1000 tries")
	return 0
}
