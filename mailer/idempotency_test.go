package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k), project("other", k))
	s := raw("acme")
	s.IdempotencyKey, s.Request = "order-1", [32]byte{1}
	first := r.send(s)
	again := r.send(s)
	if !again.Replayed || !again.Sent || again.LogID != first.LogID || again.MessageID != first.MessageID {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := s
	other.Request = [32]byte{2}
	r.refuse(other, catalog.CodeIdempotencyMismatch)
	r.kill()
	if again := r.send(s); !again.Replayed || !again.Sent || again.LogID != first.LogID {
		t.Errorf("after a restart: %+v", again)
	}
	if len(k.Letters()) != 1 {
		t.Errorf("%d mails", len(k.Letters()))
	}
	// A refused request leaves the key free.
	bad := s
	bad.IdempotencyKey, bad.ToEmail = "order-2", "nonsense"
	r.refuse(bad, catalog.CodeValidation)
	bad.ToEmail = "you@peer.example"
	if got := r.send(bad); !got.Sent || got.Replayed {
		t.Errorf("receipt %+v", got)
	}
	bad.IdempotencyKey = "tab\t"
	r.refuse(bad, catalog.CodeValidation)
	bad.IdempotencyKey = strings.Repeat("x", 256)
	r.refuse(bad, catalog.CodeValidation)
	// The key is kept for 24 hours, and then means nothing.
	r.clock.forward(24*time.Hour + time.Second)
	if got := r.send(s); got.Replayed || !got.Sent {
		t.Errorf("a day later: %+v", got)
	}
}

// TestIdempotencyRepeatsTheFirstAnswer: even if the mail has changed its state since, and if it failed.
func TestIdempotencyRepeatsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(n int, _ testrig.Letter) error {
		switch n {
		case 1:
			return errGreylisted
		case 2:
			return nil
		}
		return errRejected
	})
	r := newRig(t, project("acme", k))
	s := raw("acme")
	s.IdempotencyKey = "queued"
	first := r.send(s)
	r.reach(r.waits("acme", first.LogID, 1).NextAttemptAt)
	r.becomes("acme", first.LogID, catalog.MailSent)
	for range 2 {
		if again := r.send(s); !again.Queued || again.Sent || !again.Replayed || again.LogID != first.LogID {
			t.Errorf("again %+v", again)
		}
		r.kill()
	}
	s.IdempotencyKey = "failed"
	first = r.send(s)
	again := r.send(s)
	if first.Failed == nil || again.Failed == nil || again.Failed.Error() != first.Failed.Error() || !again.Replayed {
		t.Errorf("first %+v, again %+v", first.Failed, again.Failed)
	}
}

func TestIdempotencyWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error { <-release; return nil })
	r := newRig(t, project("acme", k))
	s := raw("acme")
	s.IdempotencyKey = "order-1"
	first := r.sendAsync(s)
	testrig.Eventually(t, "the message is there", func() bool { return k.Counts().Offered == 1 })
	r.refuse(s, catalog.CodeConflict)
	other := s
	other.Request = [32]byte{2}
	r.refuse(other, catalog.CodeIdempotencyMismatch)
	r.kill() // before anybody was answered: what the entry says becomes the answer
	close(release)
	<-first
	testrig.Eventually(t, "it was sent", func() bool { return r.send(s).Sent })
	if again := r.send(s); !again.Replayed {
		t.Errorf("again %+v", again)
	}
	if n := len(k.Letters()); n != 2 || k.Letters()[0] != k.Letters()[1] {
		t.Errorf("%d mails", n)
	}
}

func TestIdempotencyRace(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	const keys, each = 20, 8
	var wg sync.WaitGroup
	for i := range keys {
		for range each {
			wg.Go(func() {
				s := raw("acme")
				s.IdempotencyKey = fmt.Sprint("key-", i)
				got, err := r.Send(context.Background(), s)
				var e *catalog.Error
				if err != nil && (!errors.As(err, &e) || e.Code != catalog.CodeConflict) || err == nil && !got.Sent {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
	wg.Wait()
	if n := len(k.Letters()); n != keys {
		t.Errorf("%d mails for %d keys", n, keys)
	}
}
