package webhook_test

import (
	"context"
	"fmt"
	"testing"

	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// BenchmarkWrite appends an entry durably, with so many webhooks that look at it and do not want it.
func BenchmarkWrite(b *testing.B) {
	for _, hooks := range []int{0, 1, 100} {
		b.Run(fmt.Sprint("webhooks=", hooks), func(b *testing.B) {
			l, err := ledger.Open(b.TempDir(), ledger.Options{Logger: quiet})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var d declared
			var list []webhook.Hook
			for i := range hooks {
				h := hook(fmt.Sprint("h", i), "http://127.0.0.1:9")
				h.Wants = func(event string) bool { return event == "key.create" }
				list = append(list, h)
			}
			d.set(list...)
			e := webhook.New(webhook.Options{Hooks: &d, Ledger: &book{Ledger: l}, Logger: quiet})
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				e.Run(ctx)
			}()
			if _, _, err := e.Status(ctx); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				entry := catalog.AuditEntry{Action: "domain.update", ProjectID: 1, Slug: "p1", Door: catalog.DoorAPI}
				if _, err := l.AppendAudit([]catalog.AuditEntry{entry}, 0, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			cancel()
			<-done
		})
	}
}
