package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
)

// A protocol sends a question to a server and reads its answer. One load uses it from one goroutine.
type protocol interface {
	// appendRequest appends the request for a domain.
	appendRequest(dst, domain []byte) []byte
	// parse parses the answer at the beginning of b, like parseAnswer: whole is false while part of it is missing. The
	// body is valid until the next call. A name that is not found has status 404 in every protocol.
	parse(b []byte) (a answer, whole bool, err error)
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

func (httpResolve) parse(b []byte) (answer, bool, error) { return parseAnswer(b) }

// redisGet is GET in the Redis protocol, RESP2.
type redisGet struct{}

func (redisGet) appendRequest(dst, domain []byte) []byte {
	dst = append(dst, "*2\r\n$3\r\nGET\r\n"...)
	return appendBulk(dst, domain)
}

// appendBulk appends a bulk string of RESP: its length, then its bytes.
func appendBulk(dst, value []byte) []byte {
	dst = strconv.AppendInt(append(dst, '$'), int64(len(value)), 10)
	return append(append(append(dst, "\r\n"...), value...), "\r\n"...)
}

var errRESP = errors.New("the answer is not a bulk string of the Redis protocol")

func (redisGet) parse(b []byte) (a answer, whole bool, err error) {
	end := bytes.Index(b, []byte("\r\n"))
	switch {
	case end < 0:
		return a, false, nil
	case b[0] != '$':
		return a, false, errRESP
	}
	size, err := strconv.Atoi(string(b[1:end]))
	switch {
	case err != nil || size < -1 || size > maxAnswer:
		return a, false, errRESP
	case size == -1:
		return answer{status: 404, length: end + 2}, true, nil
	}
	a = answer{status: 200, length: end + 2 + size + 2}
	if len(b) < a.length {
		return answer{}, false, nil
	}
	a.body = b[end+2 : end+2+size]
	return a, true, nil
}

// etcdRange is a range of one key over etcd's JSON gateway, answered from the node's own state (serializable).
type etcdRange struct {
	addr  string
	key   []byte // base64
	value []byte // the last answer's
}

func (e *etcdRange) appendRequest(dst, domain []byte) []byte {
	e.key = base64.StdEncoding.AppendEncode(e.key[:0], domain)
	const before, after = `{"serializable":true,"key":"`, `"}`
	dst = append(append(dst, "POST /v3/kv/range HTTP/1.1\r\nHost: "...), e.addr...)
	dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(before)+len(e.key)+len(after)), 10)
	dst = append(append(dst, "\r\n\r\n"...), before...)
	return append(append(dst, e.key...), after...)
}

var (
	valueField = []byte(`"value":"`)
	errRange   = errors.New("the answer is not a range of etcd's")
)

func (e *etcdRange) parse(b []byte) (answer, bool, error) {
	a, whole, err := parseAnswer(b)
	if err != nil || !whole || a.status != 200 {
		return a, whole, err
	}
	at := bytes.Index(a.body, valueField)
	if at < 0 {
		a.status, a.body = 404, nil
		return a, true, nil
	}
	text := a.body[at+len(valueField):]
	end := bytes.IndexByte(text, '"')
	if end < 0 {
		return answer{}, false, errRange
	}
	if e.value, err = base64.StdEncoding.AppendDecode(e.value[:0], text[:end]); err != nil {
		return answer{}, false, errRange
	}
	a.body = e.value
	return a, true, nil
}
