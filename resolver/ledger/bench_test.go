package ledger

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// BenchmarkMail measures the store's work for a mail that is sent at the first attempt: AcceptMail and the final
// UpdateMail, both durable.
func BenchmarkMail(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := mailStore(b, b.TempDir(), Options{})
			message := make([]byte, 4<<10)
			var ids atomic.Int64
			b.SetParallelism(writers) // times GOMAXPROCS, which is 1 with -cpu 1
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					id := ids.Add(1)
					log, mail := newMail(id%10+1, id, mailEpoch.Add(time.Duration(id)))
					mail.Message = message
					if _, err := s.AcceptMail(log, mail, nil, mailEpoch); err != nil {
						b.Error(err)
					}
					log.Status, log.SentAt = catalog.MailSent, mailEpoch
					if err := s.UpdateMail(log); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkMailLogs reads pages from 1,000,000 entries of one project.
func BenchmarkMailLogs(b *testing.B) {
	const entries = 1_000_000
	s := mailStore(b, b.TempDir(), Options{})
	fillMailLog(b, s, entries)
	for name, q := range map[string]catalog.MailQuery{
		"first":         {Page: 1, Limit: 100},
		"middle":        {Page: entries / 200, Limit: 100},
		"last":          {Page: entries / 100, Limit: 100},
		"failed/first":  {Page: 1, Limit: 100, Status: catalog.MailFailed},
		"failed/middle": {Page: 50, Limit: 100, Status: catalog.MailFailed},
		"window":        {Page: 1000, Limit: 100, From: mailEpoch.Add(time.Second), To: mailEpoch.Add(900 * time.Second)},
		"toEmail":       {Page: 1, Limit: 100, ToEmail: "user3@to.example"},
		"subject/first": {Page: 1, Limit: 100, Sort: "subject"},
		"subject/100":   {Page: 100, Limit: 100, Sort: "subject"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if page, _, err := s.MailLogs(1, q); err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, found, err := s.MailLog(1, entries/2); !found || err != nil {
				b.Fatal(found, err)
			}
		}
	})
}

// fillMailLog makes a log of project 1 without syncs: a millisecond between entries, 1 in 100 FAILED.
func fillMailLog(b testing.TB, l *Ledger, entries int) {
	b.Helper()
	for id := int64(1); id <= int64(entries); id++ {
		log, _ := newMail(1, id, mailEpoch.Add(time.Duration(id)*time.Millisecond))
		if log.Status = catalog.MailSent; id%100 == 0 {
			log.Status = catalog.MailFailed
		}
		if _, err := (&Salvage{to: l}).putMail(log, nil); err != nil {
			b.Fatal(err)
		}
	}
}
