package mailer_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// manyQueued is a ledger with a long queue.
type manyQueued struct {
	mailer.Ledger
	n       int
	project int64
}

func (l manyQueued) EachQueued(f func(catalog.MailLog, catalog.QueuedMail) error) error {
	for i := range l.n {
		id := int64(i + 1)
		log := catalog.MailLog{ID: id, ProjectID: l.project, Status: catalog.MailRetrying, Attempts: 1, NextAttemptAt: noon.Add(time.Hour + time.Duration(i))}
		if err := f(log, catalog.QueuedMail{LogID: id, ProjectID: l.project, ExpiresAt: noon.Add(24 * time.Hour)}); err != nil {
			return err
		}
	}
	return nil
}

func TestMillionWaitingMailsInLittleMemory(t *testing.T) {
	testrig.Campaign(t) // alone: it measures the heap
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	r.options.Queue, r.options.QueuePerProject = 2_000_000, 2_000_000
	before := heap()
	r.ledger.set(func() { r.ledger.dead = true })
	r.start(manyQueued{r.ledger.Ledger, 1_000_000, projectID("acme")})
	if c := r.Counts(); c.Waiting != 1_000_000 {
		t.Fatalf("counts %+v", c)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("1,000,000 mails that wait take %d MiB", grown>>20)
	} else {
		testrig.Figure(t, "1,000,000 mails that wait take %d MiB, at most 64", grown>>20)
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestQueueThatIsReadLate has a store that comes back after mail was accepted: earlier mail is taken up then, and no
// mail twice.
func TestQueueThatIsReadLate(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	old := r.send(raw("acme")).LogID
	r.waits("acme", old, 1)
	r.ledger.set(func() { r.ledger.dead = true })
	r.open(&faultyLedger{Ledger: r.ledger.Ledger, refusing: true})
	if c := r.Counts(); c.Waiting != 0 {
		t.Errorf("counts %+v", c)
	}
	r.ledger.set(func() { r.ledger.refusing = false })
	young := r.send(raw("acme")).LogID
	r.waits("acme", young, 1)
	k.Answer(nil)
	r.pass(10 * time.Second)
	for _, id := range []int64{old, young} {
		if e := r.becomes("acme", id, catalog.MailSent); e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
	}
	r.pass(time.Hour)
	if c := r.Counts(); c.Waiting != 0 || len(k.Letters()) != 2 {
		t.Errorf("counts %+v, %d mails", c, len(k.Letters()))
	}
}

// TestFailingServersLeavePlaces has more silent servers than there are slots for queued mail.
func TestFailingServersLeavePlaces(t *testing.T) {
	t.Parallel()
	k, fine := testrig.NewSink(t), testrig.NewSink(t)
	greylistOnce := func(n int, _ testrig.Letter) error {
		if n == 1 {
			return errGreylisted
		}
		return nil
	}
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	fine.Answer(greylistOnce)
	const dead = 5
	projects := []catalog.ProjectConfig{project("good", fine)}
	for i := range dead {
		projects = append(projects, project(fmt.Sprint("dead-", i), k))
	}
	r := newRig(t, projects...)
	r.options.Retries = 4
	r.kill()
	var ids [dead]int64
	for i := range dead {
		slug := fmt.Sprint("dead-", i)
		ids[i] = r.send(raw(slug)).LogID
		r.waits(slug, ids[i], 1)
	}
	k.Down()
	r.clock.forward(6 * time.Second)
	for i := range dead {
		r.waits(fmt.Sprint("dead-", i), ids[i], 2) // from now on they are known to fail
	}
	r.settle()
	deadServerAt(t, k.Addr())
	r.clock.forward(40 * time.Second)
	testrig.Eventually(t, "those that are silent have their share", func() bool { return r.Counts().Attempts == 2 })
	good := r.send(raw("good")).LogID
	r.reach(r.waits("good", good, 1).NextAttemptAt)
	r.becomes("good", good, catalog.MailSent)
	testrig.Eventually(t, "only those that are silent are under way", func() bool { return r.Counts().Attempts == 2 })
}
