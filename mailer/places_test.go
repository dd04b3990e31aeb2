package mailer_test

import (
	"context"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// TestMorePlacesThanConnections: while some mails use all connections, others are stored already and only wait to be
// transmitted; no further connection is opened for them.
func TestMorePlacesThanConnections(t *testing.T) {
	t.Parallel()
	const connections = 2
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error {
		<-release
		return nil
	})
	r := newRig(t, project("acme", k))
	r.connections, r.options.PerServer = connections, 2*connections
	r.kill()
	var all []<-chan result
	for range 2 * connections {
		all = append(all, r.sendAsync(raw("acme")))
	}
	testrig.Eventually(t, "all are stored with an attempt under way", func() bool {
		rows, _, _ := r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 100, Status: catalog.MailSending})
		offered := k.Counts().Offered
		return len(rows) == 2*connections && offered == connections
	})
	close(release)
	for _, c := range all {
		if got := <-c; got.err != nil || !got.Sent {
			t.Errorf("%+v", got)
		}
	}
	if n := k.Counts(); n.Dials != connections || n.Offered != 2*connections {
		t.Errorf("%d mails over %d connections", n.Offered, n.Dials)
	}
	if mailer.DefaultPerServer <= smtp.DefaultConnections {
		t.Errorf("%d places for %d connections", mailer.DefaultPerServer, smtp.DefaultConnections)
	}
}

// TestNoPlaceWithinTheBudget: a mail that finds no place is PENDING while its request waits, and RETRYING once that was
// answered that it is queued. If that is known in advance the mail is RETRYING from the start, and not stored a second
// time.
func TestNoPlaceWithinTheBudget(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error {
		<-release
		return nil
	})
	r := newRig(t, project("acme", k))
	r.options.PerServer = 1
	r.kill()
	first := r.sendAsync(raw("acme"))
	testrig.Eventually(t, "the only place is taken", func() bool { return k.Counts().Offered == 1 })
	log := func(status catalog.MailStatus) (rows []catalog.MailLog) {
		rows, _, _ = r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 100, Status: status})
		return rows
	}
	second := r.sendAsync(raw("acme"))
	testrig.Eventually(t, "the second one is stored", func() bool {
		r.clock.forward(100 * time.Millisecond)
		return len(log(catalog.MailPending)) == 1
	})
	var got result
	testrig.Eventually(t, "the second one is answered", func() bool {
		r.clock.forward(time.Second)
		select {
		case got = <-second:
			return true
		default:
			return false
		}
	})
	if e := r.entry("acme", got.LogID); got.err != nil || !got.Queued || e.Status != catalog.MailRetrying || e.Attempts != 0 || e.NextAttemptAt.IsZero() || e.ErrorCode != "" {
		t.Errorf("receipt %+v, entry %+v", got, e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody has time to wait
	third, err := r.Send(ctx, raw("acme"))
	if e := r.entry("acme", third.LogID); err != nil || !third.Queued || e.Status != catalog.MailRetrying || e.Attempts != 0 || e.NextAttemptAt.IsZero() {
		t.Errorf("receipt %+v, %v, entry %+v", third, err, e)
	}
	close(release)
	<-first
	for _, id := range []int64{got.LogID, third.LogID} {
		if e := r.becomes("acme", id, catalog.MailSent); e.Attempts != 1 || e.Uncertain {
			t.Errorf("entry %+v", e)
		}
	}
}
