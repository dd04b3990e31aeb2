package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

func (r *rig) logged(slug string) int {
	r.t.Helper()
	_, total, err := r.ledger.MailLogs(projectID(slug), catalog.MailQuery{Page: 1, Limit: 10})
	if err != nil {
		r.t.Fatal(err)
	}
	return total
}

// TestQueueIsBounded: the queue is bounded per project and in total, even after kill -9. A refused send leaves nothing
// behind, an idempotent replay is answered, and a mail that ends makes room.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k), project("other", k))
	r.options.QueuePerProject, r.options.Queue = 3, 5
	r.kill()
	keyed := raw("acme")
	keyed.IdempotencyKey = "first"
	first := r.send(keyed)
	r.send(raw("acme"))
	r.send(raw("acme"))
	full := func(slug, key, says string) {
		t.Helper()
		before := r.logged(slug)
		s := raw(slug)
		s.IdempotencyKey = key
		if e := r.refuse(s, catalog.CodeRateLimited); !strings.Contains(e.Message, says) {
			t.Errorf("%v", e)
		}
		if _, found, err := r.ledger.Idempotency(projectID(slug), key); found || err != nil || r.logged(slug) != before {
			t.Errorf("a refused send left something: key %v, %v, %d log entries", found, err, r.logged(slug))
		}
	}
	full("acme", "k", "3 mails of this project wait")
	r.send(raw("other"))
	last := r.send(raw("other"))
	full("other", "k", "the mail queue is full")
	r.kill()
	full("acme", "k", "the mail queue is full")
	full("other", "k", "the mail queue is full")
	if again := r.send(keyed); !again.Replayed || again.LogID != first.LogID {
		t.Errorf("a replay with a full queue: %+v", again)
	}
	if c := r.Counts(); c.Waiting != 5 {
		t.Errorf("counts %+v", c)
	}
	// One mail of the other project ends: its place is free, even for the same key, and acme's bound still holds.
	k.Answer(func(_ int, m testrig.Letter) error {
		if m.From == "hello@other.example" {
			return nil
		}
		return errGreylisted
	})
	r.reach(r.waits("other", last.LogID, 1).NextAttemptAt)
	r.becomes("other", last.LogID, catalog.MailSent)
	testrig.Eventually(t, "there is room", func() bool { return r.Counts().Waiting < 5 })
	full("acme", "k", "3 mails of this project wait")
	s := raw("other")
	s.IdempotencyKey = "k"
	if got := r.send(s); got.Replayed || !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestQueueBoundIsExact under concurrent sends, some of which fail to be stored.
func TestQueueBoundIsExact(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	r.options.QueuePerProject = 10
	r.kill()
	r.ledger.set(func() { r.ledger.refusing = true })
	r.refuse(raw("acme"), catalog.CodeUnavailable)
	r.ledger.set(func() { r.ledger.refusing = false })
	var accepted, refused atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			_, err := r.Send(context.Background(), raw("acme"))
			var e *catalog.Error
			switch {
			case err == nil:
				accepted.Add(1)
			case errors.As(err, &e) && e.Code == catalog.CodeRateLimited:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 10 || refused.Load() != 54 || r.logged("acme") != 10 || r.Counts().Waiting != 10 {
		t.Errorf("%d accepted, %d refused, %d in the log, counts %+v", accepted.Load(), refused.Load(), r.logged("acme"), r.Counts())
	}
}

// TestLowDisk: sends are refused while the ledger's disk lacks room; queued mail goes on.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	var low atomic.Value
	low.Store("")
	r.options.LowDisk = func() string { return low.Load().(string) }
	r.kill()
	id := r.send(raw("acme")).LogID
	low.Store("7 kB free")
	if e := r.refuse(raw("acme"), catalog.CodeRateLimited); strings.Contains(e.Message, "7 kB") || r.logged("acme") != 1 {
		t.Errorf("%v", e)
	}
	if c := r.Counts(); c.LowDisk != "7 kB free" || c.Waiting != 1 {
		t.Errorf("counts %+v", c)
	}
	k.Answer(nil)
	r.reach(r.waits("acme", id, 1).NextAttemptAt)
	r.becomes("acme", id, catalog.MailSent)
	low.Store("")
	if got := r.send(raw("acme")); !got.Sent || r.Counts().LowDisk != "" {
		t.Errorf("receipt %+v, counts %+v", got, r.Counts())
	}
}

// A weighingCarrier counts the bytes of the messages that it holds.
type weighingCarrier struct {
	mailer.Carrier
	mu            sync.Mutex
	now, most, of int
}

func (c *weighingCarrier) Send(ctx context.Context, to smtp.Server, env smtp.Envelope, message []byte) smtp.Outcome {
	c.mu.Lock()
	c.now += len(message)
	c.of++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	o := c.Carrier.Send(ctx, to, env, message)
	c.mu.Lock()
	c.now -= len(message)
	c.mu.Unlock()
	return o
}

// TestMessagesInMemoryAreBounded has servers that delay large mails. Mails that do not fit into memory are queued at
// once and read later: of one project, of many, and queued mail.
func TestMessagesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	testrig.Campaign(t)
	const projects, mails, mib = 6, 20, 1 << 20
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error { <-release; return nil })
	var all []catalog.ProjectConfig
	for i := range projects {
		all = append(all, project(fmt.Sprint("p", i), k))
	}
	r := newRig(t, all...)
	carrier := &weighingCarrier{}
	r.carry = func(c mailer.Carrier) mailer.Carrier { carrier.Carrier = c; return carrier }
	r.kill()
	type sent struct {
		slug string
		result
	}
	results := make(chan sent, projects*mails)
	next := func() sent {
		t.Helper()
		select {
		case got := <-results:
			return got
		case <-time.After(testrig.Patience):
			t.Fatal("no answer: a send waits with its message in memory")
			return sent{}
		}
	}
	send := func(slug string) {
		s := raw(slug)
		s.BodyText = strings.Repeat("0123456789 abcdef\n", 900_000/18)
		go func() {
			receipt, err := r.Send(context.Background(), s)
			results <- sent{slug, result{receipt, err}}
		}()
	}
	for range mails {
		send("p0")
	}
	// A quarter of 32 MiB of one project's sends is being sent, and a few of those that were queued at once.
	for range mails - 8 {
		if got := next(); got.err != nil || !got.Queued {
			t.Fatalf("%+v", got)
		}
	}
	carrier.mu.Lock()
	if carrier.now > 12*mib || carrier.of < 4 {
		t.Errorf("%d MiB of %d mails of one project are in memory", carrier.now/mib, carrier.of)
	}
	carrier.mu.Unlock()
	for i := 1; i < projects; i++ {
		for range mails {
			send(fmt.Sprint("p", i))
		}
	}
	// 32 MiB of sends, and as much again of queued mail.
	for range (projects-1)*mails - 32 {
		if got := next(); got.err != nil || !got.Queued {
			t.Fatalf("%+v", got)
		}
	}
	testrig.Eventually(t, "mail that waited is under way", func() bool {
		carrier.mu.Lock()
		defer carrier.mu.Unlock()
		return carrier.of > 33
	})
	close(release)
	for len(results) > 0 || r.Counts().Waiting > 0 {
		select {
		case got := <-results:
			if got.err != nil {
				t.Fatal(got.err)
			}
		default:
			r.pass(0)
			r.settle()
		}
	}
	carrier.mu.Lock()
	defer carrier.mu.Unlock()
	testrig.Figure(t, "%d MiB at most, of %d mails", carrier.most/mib, projects*mails)
	if carrier.most > 64*mib || carrier.of != projects*mails || len(k.Letters()) != projects*mails {
		t.Errorf("%d MiB of messages were in memory, %d attempts, %d mails taken", carrier.most/mib, carrier.of, len(k.Letters()))
	}
}
