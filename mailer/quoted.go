package mailer

import "strings"

// plainByte tells the bytes that quoted-printable text may have as they are wherever they stand: printable ASCII but "=".
// Blanks and tabs are not among them, since they may not end a line.
var plainByte = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = c != '='
	}
	return t
}()

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// appendQuoted appends a body, whose line breaks are LF, as quoted-printable text (RFC 2045 6.7), the same bytes that
// mime/quotedprintable writes. Lines that may stay as they are, nearly all, are copied whole.
func appendQuoted(dst []byte, body string) []byte {
	for {
		line, rest, more := strings.Cut(body, "\n")
		if stays(line) {
			dst = append(dst, line...)
		} else {
			dst = appendQuotedLine(dst, line)
		}
		if !more {
			return dst
		}
		dst = append(dst, "\r\n"...)
		body = rest
	}
}

// stays reports whether a line needs no encoding and no soft break.
func stays(line string) bool {
	if len(line) >= maxQuotedLine {
		return false
	}
	for i := range len(line) {
		if c := line[i]; !plainByte[c] && !isBlank(c) {
			return false
		}
	}
	return line == "" || !isBlank(line[len(line)-1])
}

// appendQuotedLine appends one line without its break. A soft break comes where the next character would leave no room for
// the "=" of one.
func appendQuotedLine(dst []byte, line string) []byte {
	const hex = "0123456789ABCDEF"
	const room = maxQuotedLine - 1
	column := 0
	for i := 0; i < len(line); {
		run := i
		for most := min(len(line), i+room-column); run < most && (plainByte[line[run]] || isBlank(line[run])); {
			run++
		}
		last := run == len(line) && run > i && isBlank(line[run-1])
		if last {
			run-- // which has to be encoded
		}
		dst = append(dst, line[i:run]...)
		column += run - i
		if i = run; i == len(line) {
			return dst
		}
		c, size := line[i], 3
		if !last && (plainByte[c] || isBlank(c)) {
			size = 1
		}
		if column+size > room {
			dst = append(dst, "=\r\n"...)
			column = 0
		}
		if size == 3 {
			dst = append(dst, '=', hex[c>>4], hex[c&15])
			column, i = column+3, i+1
		}
	}
	return dst
}
