package smtp_test

import (
	"testing"

	"fingerpost/mailer/smtp"
)

// TestNoRecipient: only a definite refusal of the recipient's address says that there is none.
func TestNoRecipient(t *testing.T) {
	t.Parallel()
	f := func(want bool, turns []turn) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			t.Parallel()
			peer := newScripted(t, nil, turns)
			tr := newTestTransport(t, smtp.TransportOptions{})
			out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
			if out.NoRecipient != want || out.Code == "" {
				t.Errorf("%d %s %q at %s, class %d: %v, want %v", out.SMTPCode, out.Enhanced, out.Reply, out.Stage, out.Class,
					out.NoRecipient, want)
			}
		})
	}
	for _, code := range []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"} {
		f(true, rcptReply("550 "+code+" no"))
		f(true, dotReply("550 "+code+" no"))
		f(false, mailReply("550 "+code+" no"))
		f(false, dataReply("550 "+code+" no"))
	}
	f(true, rcptReply("553 5.1.3 bad syntax"))
	f(true, rcptReply("550-5.1.1 The email account that you tried to reach does not exist.|550 5.1.1 See our help"))
	for _, text := range []string{"User unknown", "no such user here", "that mailbox DOES NOT EXIST"} {
		f(true, rcptReply("550 "+text))
		f(false, rcptReply("551 "+text))
		f(false, rcptReply("450 "+text))
		f(false, rcptReply("550 5.7.1 "+text))
		f(false, rcptReply("550 5.2.1 "+text))
		f(false, dotReply("550 "+text))
		f(false, mailReply("550 "+text))
	}
	for _, reply := range []string{"550 5.1.4 ambiguous", "550 5.1.0 address", "550 5.1.7 sender", "550 5.1.8 sender", "552 5.2.2 full",
		"554 5.4.14 hop count", "550 5.4.1 access denied", "550 5.7.1 blocked", "550 5.7.23 SPF", "550 rejected", "554 no such user",
		"450 4.1.1 later", "451 5.1.1 odd", "550 relay access denied, user unknown", "550 5.0.0 user unknown"} {
		f(false, rcptReply(reply))
		f(false, dotReply(reply))
	}
	f(false, rcptReply("550 5.1.1 <mail>: Helo command rejected"))
}
