package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"fingerpost/resolver/catalog"

	"filippo.io/age"
)

// The reasons why a sealed value cannot be opened. The texts are all that a client learns.
var (
	ErrFormat  = errors.New("the sealed value is damaged: it is not what \"fingerpost secrets seal\" printed")
	ErrNoMatch = errors.New("the sealed value was made for other recipients: no identity in the seal key file opens it")
	ErrContext = errors.New("the sealed value was made for another object or field; seal it anew for this one")
)

// MaxPlainBytes bounds a secret.
const MaxPlainBytes = 64 << 10

// The sealed plaintext: magic, the lengths of the context and of the value (4 bytes each, big endian), both, and zeros
// up to a multiple of padding, which hides the length of a password.
const (
	magic   = "fpseal1\x00"
	padding = 32
)

// Context names the purpose of a sealed value: the uuid of the owning project, webhook, login or inbound block, and a field:
// "jwt_secret", "password", "secret" or "client_secret".
func Context(u catalog.UUID, field string) string { return u.String() + "/" + field }

// CheckRecipient rejects any recipient but a well-formed age X25519 one with a valid checksum.
func CheckRecipient(s string) error {
	_, err := parseRecipient(s)
	return err
}

func parseRecipient(s string) (age.Recipient, error) {
	r, err := age.ParseX25519Recipient(s)
	if err != nil {
		if strings.HasPrefix(strings.ToUpper(s), "AGE-SECRET-KEY") {
			return nil, errors.New("this is an identity, which is secret, and no recipient: make a new one, it must not " +
				"stand in a file that others see")
		}
		return nil, errors.New(`this is no age X25519 recipient: it begins with "age1" and ends with a checksum, as "fingerpost secrets keygen" prints it`)
	}
	return r, nil
}

// Seal encrypts plain for all recipients, who can open it under the same context only. The result is standard base64
// without line breaks and never the same twice.
func Seal(recipients []string, context, plain string) (string, error) {
	if len(recipients) == 0 {
		return "", errors.New("seal: there are no recipients")
	}
	if len(plain) > MaxPlainBytes {
		return "", fmt.Errorf("seal: the secret is longer than %d bytes", MaxPlainBytes)
	}
	to := make([]age.Recipient, 0, len(recipients))
	for i, r := range recipients {
		parsed, err := parseRecipient(r)
		if err != nil {
			return "", fmt.Errorf("seal: recipient %d: %w", i+1, err)
		}
		to = append(to, parsed)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to...)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	if _, err = w.Write(pack(context, plain)); err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed.Bytes()), nil
}

// Open decrypts what Seal made. The error is ErrFormat, ErrNoMatch or ErrContext.
func (i *Identities) Open(context, sealed string) (string, error) {
	if len(sealed) > 4*MaxPlainBytes || strings.ContainsAny(sealed, "\r\n") {
		return "", ErrFormat
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", ErrFormat
	}
	r, err := age.Decrypt(bytes.NewReader(raw), i.keys...)
	if err != nil {
		if noMatch := new(age.NoIdentityMatchError); errors.As(err, &noMatch) {
			return "", ErrNoMatch
		}
		return "", ErrFormat
	}
	packed, err := io.ReadAll(r)
	if err != nil {
		return "", ErrFormat
	}
	madeFor, plain, ok := unpack(packed)
	if !ok {
		return "", ErrFormat
	}
	if madeFor != context {
		return "", ErrContext
	}
	return plain, nil
}

func pack(context, plain string) []byte {
	b := []byte(magic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(context)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(plain)))
	b = append(b, context...)
	b = append(b, plain...)
	return append(b, make([]byte, (padding-len(b)%padding)%padding)...)
}

func unpack(b []byte) (context, plain string, ok bool) {
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(rest) < 8 {
		return "", "", false
	}
	n, m := uint64(binary.BigEndian.Uint32(rest)), uint64(binary.BigEndian.Uint32(rest[4:]))
	rest = rest[8:]
	if n+m > uint64(len(rest)) || uint64(len(rest))-n-m >= padding {
		return "", "", false
	}
	return string(rest[:n]), string(rest[n : n+m]), true
}
