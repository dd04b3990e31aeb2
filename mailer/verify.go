package mailer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

const maxLine = 998 // without the CR LF (RFC 5322 2.1.1)

// verify reads a finished message back, with nothing that composed it, and says where it is not what the draft asks for.
// Its errors quote nothing of the mail.
func (d soundDraft) verify(message []byte) error {
	if err := verifyBytes(message); err != nil {
		return err
	}
	if err := d.verifyHeaderNames(message); err != nil {
		return err
	}
	parsed, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return errors.New("the header cannot be read")
	}
	if err := d.verifyHeaders(parsed.Header); err != nil {
		return err
	}
	_, body, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	return d.verifyContent(parsed.Header, body)
}

// verifyBytes checks that there are only bytes that every server passes on, in lines that it must accept.
func verifyBytes(message []byte) error {
	start := 0
	for i, c := range message {
		switch {
		case c >= ' ' && c <= '~' || c == '\t':
		case c == '\r':
			if i+1 == len(message) || message[i+1] != '\n' {
				return fmt.Errorf("byte %d is a CR without an LF", i)
			}
			if i-start > maxLine {
				return fmt.Errorf("the line at byte %d has %d bytes, %d are allowed", start, i-start, maxLine)
			}
			start = i + 2
		case c == '\n':
			if i == 0 || message[i-1] != '\r' {
				return fmt.Errorf("byte %d is an LF without a CR", i)
			}
		default:
			return fmt.Errorf("byte %d is 0x%02x, which 7-bit mail cannot hold", i, c)
		}
	}
	if start != len(message) || start == 0 {
		return errors.New("the last line has no end")
	}
	return nil
}

// verifyHeaderNames checks that there is each header once, in its place, and no other.
func (d soundDraft) verifyHeaderNames(message []byte) error {
	head, _, found := bytes.Cut(message, []byte("\r\n\r\n"))
	if !found {
		return errors.New("the header has no end")
	}
	want := d.headerNames()
	if d.single() {
		want = append(want, "Content-Transfer-Encoding")
	}
	want = append(want, "Content-Type")
	var names []string
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') && len(names) > 0 {
			if len(bytes.TrimSpace(line)) == 0 {
				return errors.New("a line of the header is blank")
			}
			continue
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		names = append(names, string(name))
	}
	if !slices.Equal(names, want) {
		return fmt.Errorf("there are %d headers, or their names differ: want %s", len(names), strings.Join(want, ", "))
	}
	return nil
}

// verifyHeaders checks that a reader finds what the draft says, and nobody else.
func (d soundDraft) verifyHeaders(h mail.Header) error {
	for _, want := range []struct{ header, name, address string }{
		{"From", d.FromName, d.FromEmail}, {"To", "", d.ToEmail}, {"Reply-To", "", d.ReplyTo},
	} {
		if want.address == "" {
			continue
		}
		list, err := h.AddressList(want.header)
		if err != nil || len(list) != 1 || list[0].Name != want.name || list[0].Address != want.address {
			return fmt.Errorf("the %s does not read back as the one mailbox that it is made of", want.header)
		}
	}
	if subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject")); err != nil || subject != d.Subject {
		return errors.New("the Subject does not read back")
	}
	if date, err := time.Parse(time.RFC1123Z, h.Get("Date")); err != nil || !date.Equal(d.Date.Truncate(time.Second)) {
		return errors.New("the Date does not read back")
	}
	if h.Get("Message-ID") != d.MessageID {
		return errors.New("the Message-ID does not read back")
	}
	return nil
}

// verifyContent checks the bodies, and that there is nothing beside them.
func (d soundDraft) verifyContent(h mail.Header, content []byte) error {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case err != nil:
		return errors.New("the Content-Type cannot be read")
	case d.Text == "":
		return verifyPart(textproto.MIMEHeader(h), bytes.NewReader(content), "text/html", d.finished(d.HTML))
	case d.HTML == "":
		return verifyPart(textproto.MIMEHeader(h), bytes.NewReader(content), "text/plain", d.finished(d.Text))
	case media != "multipart/alternative":
		return errors.New("the Content-Type does not read back")
	}
	delimiter := []byte("--" + params["boundary"])
	if !bytes.HasPrefix(content, delimiter) || !bytes.HasSuffix(content, append(delimiter, "--\r\n"...)) {
		return errors.New("the content does not begin and end with its boundary")
	}
	parts := multipart.NewReader(bytes.NewReader(content), params["boundary"])
	for _, want := range []struct{ media, body string }{{"text/plain", d.Text}, {"text/html", d.HTML}} {
		part, err := parts.NextRawPart()
		if err != nil {
			return errors.New("a part is missing")
		}
		if err := verifyPart(part.Header, part, want.media, want.body); err != nil {
			return err
		}
	}
	if _, err := parts.NextRawPart(); err != io.EOF {
		return errors.New("there is more than the two parts")
	}
	return nil
}

// verifyPart checks one body and what its headers say about it.
func verifyPart(header textproto.MIMEHeader, r io.Reader, media, body string) error {
	if header.Get("Content-Type") != media+"; charset=UTF-8" || header.Get("Content-Transfer-Encoding") != "quoted-printable" {
		return fmt.Errorf("the headers of the %s do not read back", media)
	}
	if err := verifyBody(quotedprintable.NewReader(r), body); err != nil {
		return fmt.Errorf("%s: %w", media, err)
	}
	return nil
}

// verifyBody compares a decoded body, whose line breaks are CR LF, with one whose line breaks are LF.
func verifyBody(r io.Reader, want string) error {
	at, cr := 0, false
	for buf := make([]byte, 4096); ; {
		n, err := r.Read(buf)
		for _, c := range buf[:n] {
			if c == '\r' && !cr {
				cr = true
				continue
			}
			if at == len(want) || c != want[at] || cr != (c == '\n') {
				return fmt.Errorf("the body does not read back at byte %d", at)
			}
			at, cr = at+1, false
		}
		switch {
		case err == io.EOF && (at < len(want) || cr):
			return fmt.Errorf("the body ends at byte %d of %d", at, len(want))
		case err == io.EOF:
			return nil
		case err != nil:
			return errors.New("the body cannot be decoded")
		}
	}
}
