package message

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// A Draft is a mail before it is composed. Its texts are UTF-8. In the bodies CR LF, CR and LF each count as one line
// break.
type Draft struct {
	FromEmail string // a bare address, see catalog.ParseAddress; so are ReplyTo and ToEmail
	FromName  string // "" for none
	ReplyTo   string // "" for none
	ToEmail   string
	Subject   string
	HTML      string // "" for none; then Text is required
	Text      string // "" for none; then HTML is required
	MessageID string // with its angle brackets, see NewMessageID
	Date      time.Time
	// Unsubscribe is the address at which the recipient leaves the mail's category with one click (RFC 8058): printable
	// ASCII, at most catalog.MaxUnsubscribe bytes. "": the mail is not subscribed to.
	Unsubscribe string
}

// Compose returns the message of a draft: the exact bytes for an SMTP server, 7-bit, lines of at most 998 bytes that
// end in CR LF, not dot-stuffed. Equal drafts give equal bytes.
//
// What a caller can correct is a *catalog.Error VALIDATION_ERROR with all problems, under the API's names of the
// fields. Any other error means that the message does not read back as the draft, and must not be sent.
//
// Headers follow RFC 5322 and RFC 2047. With both HTML and Text the message is a multipart/alternative; with one of
// them it is that part alone, without a multipart around it. A single body gets a final line break if it lacks one.
// Apart from that, a body arrives unchanged, with CR LF as line breaks.
func Compose(d Draft) ([]byte, error) {
	sound, problems := d.check()
	if len(problems) > 0 {
		return nil, &catalog.Error{Code: catalog.CodeValidation, Message: "the mail is invalid", Problems: problems}
	}
	message, err := sound.build()
	if err == nil {
		err = sound.verify(message)
	}
	if err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}
	return message, nil
}

// Envelope returns the addresses of the envelope. Call it for a draft that Compose has accepted; it returns "" for an
// address that Compose refuses.
func (d Draft) Envelope() (from, to string) {
	from, _ = catalog.ParseAddress(d.FromEmail)
	to, _ = catalog.ParseAddress(d.ToEmail)
	return from, to
}

// NewMessageID returns a Message-ID, with its angle brackets, for the mail with this log entry and sender. 64 random
// bits keep it apart from those of other nodes and of restored stores that use the same log id. It is no secret.
func NewMessageID(logID int64, fromEmail string) string {
	var random [8]byte
	rand.Read(random[:]) // never fails
	host := "fingerpost.invalid"
	if address, err := catalog.ParseAddress(fromEmail); err == nil {
		host = address[strings.LastIndexByte(address, '@')+1:]
	}
	return "<" + strconv.FormatInt(logID, 10) + "." + hex.EncodeToString(random[:]) + "@" + host + ">"
}

// Limits of a draft's texts, in bytes. The subject's limit is catalog.MaxSubjectBytes.
const (
	maxFromNameBytes = 255 // as SMTPConfig.Validate has it
	maxPartBytes     = 1 << 20
)

// A soundDraft is a Draft that has passed check: addresses are canonical, line breaks in bodies are LF.
type soundDraft struct{ Draft }

// check returns all problems of the draft.
func (d Draft) check() (soundDraft, catalog.Problems) {
	var ps catalog.Problems
	address := func(path string, value *string) {
		canonical, err := catalog.ParseAddress(*value)
		if err != nil {
			ps.Addf(path, "%v", err)
		}
		*value = canonical
	}
	address("toEmail", &d.ToEmail)
	address("fromEmail", &d.FromEmail)
	if d.ReplyTo != "" {
		address("replyTo", &d.ReplyTo)
	}
	checkHeaderText(&ps, "fromName", d.FromName, maxFromNameBytes)
	if checkHeaderText(&ps, "subject", d.Subject, catalog.MaxSubjectBytes) && strings.TrimSpace(d.Subject) == "" {
		ps.Addf("subject", "is required and must not be blank")
	}
	if d.HTML == "" && d.Text == "" {
		ps.Addf("bodyHtml", "is required where there is no bodyText")
	}
	checkBody(&ps, "bodyHtml", &d.HTML)
	checkBody(&ps, "bodyText", &d.Text)
	return soundDraft{d}, ps
}

// checkComposed finds problems that a caller cannot correct.
func (d *soundDraft) checkComposed() error {
	if !isMessageID(d.MessageID) {
		return errors.New("the Message-ID is malformed")
	}
	if year := d.Date.UTC().Year(); year < 1900 || year > 9999 { // RFC 5322 3.3
		return fmt.Errorf("the date lies in the year %d", year)
	}
	if strings.ContainsFunc(d.Unsubscribe, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }) ||
		len(d.Unsubscribe) > catalog.MaxUnsubscribe {
		return errors.New("the link to unsubscribe is malformed")
	}
	return nil
}

// isMessageID reports whether s is a msg-id of a dot-atom and a host name (RFC 5322 3.6.4). It may be longer than an
// address, because its host may have the full length of a host name.
func isMessageID(s string) bool {
	inner, opened := strings.CutPrefix(s, "<")
	inner, closed := strings.CutSuffix(inner, ">")
	left, host, found := strings.Cut(inner, "@")
	if !opened || !closed || !found || catalog.CheckAddress(left+"@localhost") != "" {
		return false
	}
	canonical, err := hostname.Parse(host)
	return err == nil && canonical == host
}
