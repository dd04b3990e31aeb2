package mailer_test

import (
	"testing"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// TestMorePlacesThanConnections: while mails have all connections, others are stored already and only have to be handed
// over; no connection more is made for them.
func TestMorePlacesThanConnections(t *testing.T) {
	const connections = 2
	k := newSink(t)
	release := make(chan struct{})
	k.answers(func(int, arrival) error {
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
	until(t, "all are stored with an attempt under way", func() bool {
		rows, _, _ := r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 100, Status: catalog.MailSending})
		_, _, offered := k.count()
		return len(rows) == 2*connections && offered == connections
	})
	close(release)
	for _, c := range all {
		if got := <-c; got.err != nil || !got.Sent {
			t.Errorf("%+v", got)
		}
	}
	if dials, _, offered := k.count(); dials != connections || offered != 2*connections {
		t.Errorf("%d mails over %d connections", offered, dials)
	}
	if mailer.DefaultPerServer <= mailer.DefaultConnections {
		t.Errorf("%d places for %d connections", mailer.DefaultPerServer, mailer.DefaultConnections)
	}
}
