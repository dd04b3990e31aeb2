package gate

import (
	"bytes"
	"encoding/binary"
	"io"
)

// ResolvePath is the path of plain resolve requests.
const ResolvePath = "/api/platform/projects/resolve"

// PlainQuestion is the beginning of nearly every resolve request.
const PlainQuestion = "GET " + ResolvePath + "?domain="

var (
	plainBegin   = []byte(PlainQuestion)
	plainVersion = []byte("HTTP/1.1\r\n")
)

// A Question is a plain resolve request. Its slices are valid during AnswerPlain.
type Question struct {
	Domain []byte // as the client spelled it
	Key    []byte // the value of X-Platform-Key
	ETags  []byte // the value of If-None-Match, nil if there is none
	ID     []byte // the value of X-Request-Id, nil if there is none
}

// headFields are what the fast path needs of a request's header. The slices belong to the head.
type headFields struct {
	key, etags, id []byte // the values of X-Platform-Key, If-None-Match and X-Request-Id; nil if absent
	hosts          int8   // number of Host fields
	odd            bool   // something is not plain, so the library has to decide
}

// note records a header field. It compares names in the usual spellings only; another spelling makes the request odd.
func (f *headFields) note(name, value []byte) {
	value = bytes.Trim(value, " \t")
	if !printable(value) {
		f.odd = true
		return
	}
	switch string(name) {
	case "Host", "host":
		f.hosts++
		f.odd = f.odd || !plainHost(value)
	case "X-PLATFORM-KEY", "X-Platform-Key", "x-platform-key":
		f.once(&f.key, value)
	case "If-None-Match", "if-none-match":
		f.once(&f.etags, value)
	case "X-Request-Id", "X-Request-ID", "x-request-id":
		f.once(&f.id, value)
	case "Connection", "connection":
		f.odd = f.odd || string(value) != "keep-alive"
	case "Accept", "accept", "Accept-Encoding", "accept-encoding", "Accept-Language", "accept-language",
		"User-Agent", "user-agent", "Traceparent", "traceparent", "Tracestate", "tracestate",
		"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host", "x-forwarded-host",
		"X-Forwarded-Proto", "x-forwarded-proto", "X-Real-IP", "X-Real-Ip", "x-real-ip":
		// resolve does not depend on these fields
	default:
		f.odd = true
	}
}

func (f *headFields) once(field *[]byte, value []byte) {
	f.odd = f.odd || *field != nil || len(value) == 0
	*field = value
}

// printable reports whether b is ASCII without control characters. It may return false for a b that is.
func printable(b []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if (x|(x-0x20*ones)|(x+ones))&tops != 0 { // not ASCII, below a space, DEL
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// WordByte reports whether c is one of A-Z, a-z, 0-9, dot, underscore and hyphen.
func WordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_'
}

// plainHost reports whether b is a host name or an IPv4 address, with or without a port.
func plainHost(b []byte) bool {
	host, port, hasPort := bytes.Cut(b, []byte{':'})
	for _, c := range host {
		if !WordByte(c) {
			return false
		}
	}
	number, decimal := int64(0), true
	if hasPort {
		number, decimal = parseLength(port)
	}
	return len(host) > 0 && len(port) <= 5 && decimal && number <= 65535
}

// takeFastPath answers a whole head without a body, if the fast path can. An error is an error of the connection.
func (c *Conn) takeFastPath(head []byte) (answered bool, err error) {
	f := &c.in.scan.fields
	if c.resolver == nil || !c.times.served || f.odd || f.hosts != 1 || f.key == nil {
		return false, nil
	}
	// A domain with escapes, or with more parameters after it, is no host name: the resolver refuses it, and the handler
	// takes over.
	rest, plain := bytes.CutPrefix(head, plainBegin)
	domain, version, _ := bytes.Cut(rest, []byte{' '})
	if !plain || len(domain) == 0 || !bytes.HasPrefix(version, plainVersion) || !c.life.beginAnswer() {
		return false, nil
	}
	c.question = Question{domain, f.key, f.etags, f.id}
	if response := c.resolver.AnswerPlain(c, &c.question); response != nil {
		c.times.endMessage()
		_, err = c.Write(response)
		answered = true
	}
	switch {
	case c.life.endAnswer():
	case !answered:
		c.life.revive() // the library closes it when it has answered
	default:
		c.close()
		if err == nil {
			err = io.EOF
		}
	}
	return answered, err
}
