package mailer_test

import (
	"log/slog"
	"net/netip"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver"
)

// BenchmarkMailer sends raw mail to a sink over reused connections, from eight callers, with the store on the disk.
func BenchmarkMailer(b *testing.B) {
	k := testrig.NewSink(b)
	r, err := resolver.Open(resolver.Options{DataDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	rig := &rig{t: b, resolver: r}
	rig.declare(project("acme", k))
	carrier := smtp.NewTransport(smtp.TransportOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer carrier.Close()
	m, err := mailer.Open(mailer.Options{Ledger: r, Projects: r, Carrier: carrier, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Drain(b.Context()) }()
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if got, err := m.Send(b.Context(), raw("acme")); err != nil || !got.Sent {
				b.Fatal(got, err)
			}
		}
	})
}
