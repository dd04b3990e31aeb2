//go:build amd64 || arm64

package resolver

import "unsafe"

// prefetch tells the processor that the n bytes at p, one at least, will be wanted soon. It waits for nothing, and
// reads nothing that a program could see.
//
//go:noescape
func prefetch(p unsafe.Pointer, n uintptr)
