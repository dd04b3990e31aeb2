package message

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
)

// Bodies returns the HTML and the text of a message that Compose has made; "" for one that it lacks. Its lines end in LF.
func Bodies(message []byte) (html, text string, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return "", "", fmt.Errorf("read a composed message: %w", err)
	}
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", "", fmt.Errorf("read the Content-Type of a composed message: %w", err)
	}
	add := func(media string, body io.Reader) error {
		decoded, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read the %s of a composed message: %w", media, err)
		}
		decoded = bytes.ReplaceAll(decoded, []byte("\r\n"), []byte("\n"))
		if media == "text/html" {
			html = string(decoded)
		} else {
			text = string(decoded)
		}
		return nil
	}
	if media != "multipart/alternative" {
		return html, text, add(media, quotedprintable.NewReader(m.Body))
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextPart() // decodes quoted-printable
		if err == io.EOF {
			return html, text, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("read the parts of a composed message: %w", err)
		}
		media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err := add(media, part); err != nil {
			return "", "", err
		}
	}
}
