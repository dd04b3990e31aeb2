package main

// A protocol appends the request for a domain. One load uses it from one goroutine.
type protocol interface {
	appendRequest(dst, domain []byte) []byte
}

const resolvePath = "/api/platform/projects/resolve?domain="

func requestTail(addr, key string) string {
	return " HTTP/1.1\r\nHost: " + addr + "\r\nX-PLATFORM-KEY: " + key + "\r\n\r\n"
}

// httpResolve is the protocol of fingerpost, the baselines and nginx.
type httpResolve struct{ tail string }

func (h httpResolve) appendRequest(dst, domain []byte) []byte {
	return append(append(append(dst, "GET "+resolvePath...), domain...), h.tail...)
}
