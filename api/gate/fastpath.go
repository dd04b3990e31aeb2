package gate

import (
	"bytes"
	"encoding/binary"
	"io"
	"time"
)

// ResolvePath is the path of plain resolve requests.
const ResolvePath = "/api/platform/projects/resolve"

// PlainQuestion is the beginning of nearly every resolve request.
const PlainQuestion = "GET " + ResolvePath + "?domain="

// CheckPath is the path of plain checks.
const CheckPath = "/check"

// MePath is the path of plain questions about a token.
const MePath = "/api/auth/me"

var (
	checkBegin   = []byte("GET " + CheckPath)
	meBegin      = []byte("GET " + MePath)
	plainBegin   = []byte(PlainQuestion)
	plainVersion = []byte("HTTP/1.1\r\n")
)

// A Plain is a kind of requests that the fast path can answer.
type Plain uint8

// The questions that are answered before the library parses.
const (
	PlainResolve Plain = iota // GET of resolve with a key, or of MePath without one
	PlainCheck                // GET of a gateway's check
)

// A Question is a plain request of a listener's kind. Its slices are valid during AnswerPlain.
type Question struct {
	Domain []byte // resolve: as the client spelled it
	Key    []byte // resolve: the value of X-Platform-Key; nil with MePath
	ETags  []byte // resolve: the value of If-None-Match, nil if there is none
	ID     []byte // the value of X-Request-Id, nil if there is none
	Check  Check
	// Sampled says that there is a traceparent whose flags have the sampled bit, or one that is not well formed.
	Sampled bool
	At      time.Time // when it arrived: the one look at the clock that gate and resolver share
}

// A Check is what PlainCheck and MePath add to a Question.
type Check struct {
	Query         []byte // behind the "?"
	Host          []byte
	Forwarded     []byte // the first X-Forwarded-Host, empty if there is none
	Original      []byte // X-Original-URL, empty if there is none
	Authorized    bool   // there is an Authorization header
	Authorization []byte // the value, if there is one such header
}

// headFields are what the fast path needs of a request's header. The slices belong to the head.
type headFields struct {
	key, etags, id []byte // the values of X-Platform-Key, If-None-Match and X-Request-Id; nil if absent
	host           []byte
	forwarded      []byte // the first X-Forwarded-Host
	original       []byte // X-Original-URL; nil if absent
	authorization  []byte // Authorization; nil if absent, or more than one
	hosts          int8   // number of Host fields
	forwards       bool   // there is an X-Forwarded-Host
	authorized     bool   // there is an Authorization
	sampled        bool   // see Question
	odd            bool   // something is not plain, so the library has to decide
	more           bool   // there are fields that matter to the library at most as text
}

// note records a header field. It compares names in the usual spellings only; another spelling makes the request odd.
func (f *headFields) note(name, value []byte) {
	if !printable(value) {
		f.odd = true
		return
	}
	switch string(name) {
	case "Host", "host":
		f.hosts++
		f.host = value
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
		"User-Agent", "user-agent", "Tracestate", "tracestate",
		"X-Forwarded-For", "x-forwarded-for",
		"X-Forwarded-Proto", "x-forwarded-proto", "X-Real-IP", "X-Real-Ip", "x-real-ip":
		// resolve and check do not depend on these fields
	case "Traceparent", "traceparent":
		f.sampled = f.sampled || sampled(value)
	case "X-Forwarded-Host", "x-forwarded-host":
		if !f.forwards {
			f.forwards, f.forwarded = true, value
		}
	case "X-Original-URL", "X-Original-Url", "x-original-url":
		f.more = true
		f.once(&f.original, value)
	case "Authorization", "authorization":
		if f.authorization = value; f.authorized {
			f.authorization = nil
		}
		f.more, f.authorized = true, true
	default:
		f.more = true
		f.odd = f.odd || !Word(name) || special(name)
	}
}

// specials are the fields that the library or check acts on, in lower case. note finds their usual spellings, or leaves
// them to the library.
var specials = [...]string{"host", "x-forwarded-host", "x-original-url", "authorization", "x-request-id", "connection",
	"content-length", "traceparent",
	"transfer-encoding", "expect", "trailer", "upgrade"}

func special(name []byte) bool {
	for _, s := range specials {
		if foldEqual(name, s) {
			return true
		}
	}
	return false
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

// Word reports whether b consists of A-Z, a-z, 0-9, dot, underscore and hyphen, and is not empty.
func Word(b []byte) bool {
	for _, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return len(b) > 0
}

// plainHost reports whether b is a host name or an IPv4 address, with or without a port.
func plainHost(b []byte) bool {
	host, port, hasPort := bytes.Cut(b, []byte{':'})
	number, decimal := int64(0), true
	if hasPort {
		number, decimal = parseLength(port)
	}
	return Word(host) && len(port) <= 5 && decimal && number <= 65535
}

// ask fills in the question of a whole head, if it is a plain one.
func (c *Conn) ask(head []byte, f *headFields) (plain bool) {
	begin, resolves := plainBegin, false
	switch {
	case c.plain == PlainCheck:
		begin = checkBegin
	case f.key == nil:
		begin = meBegin
	case f.more:
		return false
	default:
		resolves = true
	}
	rest, plain := bytes.CutPrefix(head, begin)
	target, version, _ := bytes.Cut(rest, []byte{' '})
	if !plain || !bytes.HasPrefix(version, plainVersion) {
		return false
	}
	c.question.Sampled = f.sampled
	if !resolves {
		query, asked := bytes.CutPrefix(target, []byte{'?'})
		c.question.Key, c.question.ID = nil, f.id
		c.question.Check = Check{query, f.host, f.forwarded, f.original, f.authorized, f.authorization}
		return asked || len(target) == 0
	}
	// A domain with escapes, or with more parameters after it, is no host name: the resolver refuses it, and the handler
	// takes over.
	q := &c.question
	q.Domain, q.Key, q.ETags, q.ID = target, f.key, f.etags, f.id
	return len(target) > 0
}

// takeFastPath answers a whole head, if the fast path can. A head that announces a body is odd. An error is an error of
// the connection.
func (c *Conn) takeFastPath(head []byte) (answered bool, err error) {
	f := &c.in.scan.fields
	if c.resolver == nil || !c.times.served || f.odd || f.hosts != 1 || !c.ask(head, f) || !c.life.beginAnswer() {
		return false, nil
	}
	c.question.At = time.Now()
	if response := c.resolver.AnswerPlain(c, &c.question); response != nil {
		c.times.endMessage()
		_, err = c.write(response, c.question.At)
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

// sampled reports whether the flags of a traceparent have the sampled bit, whose digit is the 55th byte. Other text than a
// digit counts as sampled: the handler looks closely.
func sampled(traceparent []byte) bool {
	const flags = len("00-") + 32 + 1 + 16 + len("-0")
	if len(traceparent) <= flags {
		return true
	}
	switch traceparent[flags] {
	case '0', '2', '4', '6', '8', 'a', 'c', 'e':
		return false
	}
	return true
}
