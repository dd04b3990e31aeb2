package gate

import "bytes"

// A headScan checks the head of a request (request line, header lines, empty line) while it arrives, and finds the
// body's length. It is stricter than the HTTP library and RFC 9112: it refuses what two parsers might read in two ways,
// so that a proxy in front cannot be made to see other messages than this server (api/README.md, Answers).
//
// The library itself refuses bytes that names and values cannot have, and a missing or repeated Host.
type headScan struct {
	at      int   // start of the first line that has not been checked
	length  int64 // Content-Length, -1 when there is none
	begun   bool  // the request line has been read
	blank   bool  // an empty line before the request line has been skipped
	http10  bool
	chunked bool
	expects bool // the client waits for 100 Continue
	fields  headFields
}

var (
	headLength = []byte("content-length")
	headCoding = []byte("transfer-encoding")
	headExpect = []byte("expect")
)

// feed scans b, the head from its first byte as far as it has arrived; each call gets at least the bytes of the call
// before. It returns the head's length once the head is complete, and 0 before.
func (h *headScan) feed(b []byte) (end int, bad *Refusal) {
	if h.at == 0 {
		if len(b) > 0 && b[0] != '\r' && (b[0] < 'A' || b[0] > 'Z') {
			return 0, refuseRequestLine // such as a TLS hello, which may never have a line end
		}
		h.length = -1
	}
	for {
		rest := b[h.at:]
		lf := bytes.IndexByte(rest, '\n')
		if lf < 0 {
			return 0, nil
		}
		if bytes.IndexByte(rest[:lf], '\r') != lf-1 || lf == 0 {
			return 0, refuseLineEnd
		}
		line := rest[:lf-1]
		h.at += lf + 1
		switch {
		case !h.begun:
			if bad = h.requestLine(line); bad != nil {
				return 0, bad
			}
		case len(line) == 0:
			if h.chunked && (h.length >= 0 || h.http10) {
				return 0, refuseFraming
			}
			return h.at, nil
		default:
			if bad = h.headerLine(line); bad != nil {
				return 0, bad
			}
		}
	}
}

// requestLine checks the version; the library checks method and target. One empty line before the request line is
// accepted, as RFC 9112, 2.2 recommends.
func (h *headScan) requestLine(line []byte) *Refusal {
	if len(line) == 0 && !h.blank {
		h.blank = true
		return nil
	}
	if len(line) < len(" HTTP/1.1") || line[0] < 'A' || line[0] > 'Z' {
		return refuseRequestLine
	}
	switch string(line[len(line)-9:]) {
	case " HTTP/1.1":
	case " HTTP/1.0":
		h.http10 = true
	default:
		return refuseVersion
	}
	h.begun = true
	return nil
}

func (h *headScan) headerLine(line []byte) *Refusal {
	if line[0] == ' ' || line[0] == '\t' {
		return refuseFold
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || bytes.IndexByte(line[:colon], ' ') >= 0 || line[colon-1] == '\t' {
		return refuseHeaderName
	}
	name, value := line[:colon], line[colon+1:]
	for len(value) > 0 && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	for len(value) > 0 && (value[len(value)-1] == ' ' || value[len(value)-1] == '\t') {
		value = value[:len(value)-1]
	}
	h.fields.note(name, value)
	switch colon {
	case len("expect"):
		h.expects = h.expects || bytes.EqualFold(name, headExpect) && foldEqual(value, "100-continue")
	case len("content-length"):
		if !bytes.EqualFold(name, headLength) {
			return nil
		}
		n, ok := parseLength(value)
		if !ok || h.length >= 0 {
			return refuseLength
		}
		h.length = n
	case len("transfer-encoding"):
		if !bytes.EqualFold(name, headCoding) {
			return nil
		}
		if h.chunked || !foldEqual(value, "chunked") {
			return refuseCoding
		}
		h.chunked = true
	}
	return nil
}

// parseLength reads plain decimal digits, 18 of them at most.
func parseLength(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// foldEqual compares b with text, which is ASCII, ignoring ASCII case. The two letters beyond ASCII that EqualFold
// takes for "k" and "s" have more bytes, so they cannot make a b of the same length equal.
func foldEqual(b []byte, text string) bool {
	return len(b) == len(text) && bytes.EqualFold(b, []byte(text))
}

// A chunkScan follows a chunked body to its end. It refuses chunk extensions and trailer fields: no client needs them
// here, and the library would merge trailer fields into the header.
type chunkScan struct {
	left   int64 // bytes of the current chunk's data, or its size while that is being read
	digits int8
	step   chunkStep
}

type chunkStep int8

const (
	chunkSize   chunkStep = iota // hexadecimal digits, then CR
	chunkSizeLF                  // the LF after the size
	chunkBytes
	chunkCR // the CR after the data
	chunkLF
	chunkLastCR // the CR of the line after the last chunk
	chunkLastLF
)

// announced returns how much of the current chunk's data has not arrived.
func (s *chunkScan) announced() int64 {
	if s.step == chunkBytes {
		return s.left
	}
	return 0
}

// feed takes the next bytes and returns how many of them belong to the body and whether it has ended. The data is
// appended to data, unless that is nil.
func (s *chunkScan) feed(b []byte, data *[]byte) (n int, done bool, bad *Refusal) {
	for n < len(b) {
		c := b[n]
		switch s.step {
		case chunkSize:
			if digit := hexDigit(c); digit >= 0 && s.digits < 8 {
				s.left, s.digits = s.left<<4|int64(digit), s.digits+1
			} else if c == '\r' && s.digits > 0 {
				s.step = chunkSizeLF
			} else {
				return n, false, refuseChunk
			}
		case chunkBytes:
			take := min(s.left, int64(len(b)-n))
			s.left -= take
			if data != nil {
				*data = append(*data, b[n:n+int(take)]...)
			}
			n += int(take)
			if s.left == 0 {
				s.step = chunkCR
			}
			continue
		case chunkCR, chunkLastCR:
			if c != '\r' {
				return n, false, refuseChunk
			}
			s.step++
		default:
			if c != '\n' {
				return n, false, refuseChunk
			}
			if s.step == chunkLastLF {
				return n + 1, true, nil
			}
			s.afterLine()
		}
		n++
	}
	return n, false, nil
}

// afterLine moves on after a size line or a chunk's data.
func (s *chunkScan) afterLine() {
	switch {
	case s.step == chunkLF:
		*s = chunkScan{}
	case s.left == 0:
		s.step = chunkLastCR
	default:
		s.step = chunkBytes
	}
}

// hexDigit returns the value of c as a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
