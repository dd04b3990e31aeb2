package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A mailCrowd writes mail from many goroutines and records what was acknowledged.
type mailCrowd struct {
	mu      sync.Mutex // guards the fields below
	acked   map[int64]catalog.MailLog
	refused map[int64]error
}

func (c *mailCrowd) ack(log catalog.MailLog, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.acked[log.ID] = log
	} else {
		c.refused[log.ID] = err
	}
	return err == nil
}

func (c *mailCrowd) snapshot() map[int64]catalog.MailLog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.acked)
}

// run writes each of a writer's mails up to its final status, until one is refused.
func (c *mailCrowd) run(l *Ledger, writer, mails int) {
	for n := range mails {
		id := int64(n*100 + writer + 1)
		log, mail := newMail(id%3+1, id, mailEpoch.Add(time.Duration(id)*time.Second))
		idem := &catalog.Idempotency{ProjectID: log.ProjectID, Key: fmt.Sprint("key-", id), LogID: id, ExpiresAt: mailEpoch.Add(time.Hour)}
		if writer%2 == 1 { // like one that is sent at once
			log.Status, log.Attempts = catalog.MailSending, 1
		}
		_, err := l.AcceptMail(log, mail, idem, mailEpoch)
		if !c.ack(*log, err) {
			return
		}
		for _, status := range []catalog.MailStatus{catalog.MailSending, catalog.MailRetrying, catalog.MailSending, catalog.MailSent}[:1+n%4] {
			log.Status = status
			log.Attempts++
			if !c.ack(*log, l.UpdateMail(log)) {
				return
			}
		}
	}
}

func newMailCrowd() *mailCrowd {
	return &mailCrowd{acked: map[int64]catalog.MailLog{}, refused: map[int64]error{}}
}

// checkAfterCrash opens a store and expects everything acknowledged before the crash. Unacknowledged writes may be
// there.
func checkAfterCrash(t *testing.T, fs vfs.FS, acked map[int64]catalog.MailLog) {
	t.Helper()
	s := mailStore(t, "data", Options{FS: fs})
	defer s.Close()
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
	queued := map[int64]bool{}
	if err := s.EachQueued(func(log catalog.MailLog, _ catalog.QueuedMail) error {
		queued[log.ID] = true
		return nil
	}); err != nil {
		t.Error(err)
	}
	for id, want := range acked {
		log, found, err := s.MailLog(want.ProjectID, id)
		if err != nil || !found || log.Attempts < want.Attempts || log.Attempts == want.Attempts && !reflect.DeepEqual(log, want) {
			t.Fatalf("acknowledged %+v\nfound %+v, %v, %v", want, log, found, err)
		}
		if queued[id] == log.Status.Ended() {
			t.Errorf("%d is %s, queued: %v", id, log.Status, queued[id])
		}
		if m, found, err := s.QueuedMail(id); queued[id] && (err != nil || !found || string(m.Message) != fmt.Sprintf("Message %d\r\n", id)) {
			t.Errorf("%+v, %v, %v", m, found, err)
		}
		if i, found, err := s.Idempotency(want.ProjectID, fmt.Sprint("key-", id), mailEpoch); err != nil || !found || i.LogID != id {
			t.Errorf("the key of %d: %+v, %v, %v", id, i, found, err)
		}
		if s.MailIDBound() < id {
			t.Errorf("ids go on behind %d, and there is %d", s.MailIDBound(), id)
		}
	}
}

// TestMailSurvivesPowerCuts cuts the power at moments of concurrent writes.
func TestMailSurvivesPowerCuts(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	for seed := range uint64(4) {
		mem := vfs.NewCrashableMem()
		s := mailStore(t, "data", Options{FS: mem})
		c := newMailCrowd()
		var writers sync.WaitGroup
		for writer := range 8 {
			writers.Go(func() { c.run(s, writer, 60) })
		}
		done := make(chan struct{})
		go func() { writers.Wait(); close(done) }()
		r := rand.New(rand.NewPCG(seed, 3))
		for cuts, going := 0, true; going; cuts++ {
			acked := c.snapshot() // read before the cut
			image := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			checkAfterCrash(t, image, acked)
			select {
			case <-done:
				going = cuts < 3
			default:
			}
		}
		if len(c.refused) > 0 {
			t.Error(c.refused)
		}
		acked := c.snapshot()
		checkAfterCrash(t, mem.CrashClone(vfs.CrashCloneCfg{}), acked)
		if len(acked) != 8*60 {
			t.Errorf("%d mails", len(acked))
		}
	}
}

// TestMailOnAFailingDisk: writes acknowledged by a failing disk are there, refused ones return ErrUnavailable, no call
// hangs, and refused mails can be deleted from what is left.
func TestMailOnAFailingDisk(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{1, 2, 7, 40, 150} {
		mem := vfs.NewCrashableMem()
		var writes int64
		var mu sync.Mutex
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpFileWrite && op.Kind != errorfs.OpFileSyncData && op.Kind != errorfs.OpFileSync {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if writes++; writes > 20+after {
				return syscall.EIO
			}
			return nil
		}))
		s := mailStore(t, "data", Options{FS: disk})
		c := newMailCrowd()
		var writers sync.WaitGroup
		for writer := range 8 {
			writers.Go(func() { c.run(s, writer, 200) })
		}
		writers.Wait()
		acked := c.snapshot()
		if len(c.refused) != 8 {
			t.Errorf("%d writers of 8 were refused", len(c.refused))
		}
		var doubtful []int64
		for id, err := range c.refused {
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("%d: %v", id, err)
			}
			if _, accepted := acked[id]; !accepted {
				doubtful = append(doubtful, id)
			}
		}
		// Reads go on while the goroutine with the turn never returns it.
		for id, want := range acked {
			if _, found, err := s.MailLog(want.ProjectID, id); err != nil || !found {
				t.Errorf("%d after the failure: %v, %v", id, found, err)
			}
		}
		left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		s.Close()
		checkAfterCrash(t, left, acked)
		again := mailStore(t, "data", Options{FS: left})
		if err := again.ForgetMail(doubtful); err != nil {
			t.Fatal(err)
		}
		for _, id := range doubtful {
			_, there, _ := again.MailLog(id%3+1, id)
			_, queued, _ := again.QueuedMail(id)
			_, kept, _ := again.Idempotency(id%3+1, fmt.Sprint("key-", id), mailEpoch)
			if there || queued || kept {
				t.Errorf("%d was refused and is there: %v, %v, %v", id, there, queued, kept)
			}
		}
		if err := again.Verify(); err != nil {
			t.Error(err)
		}
		again.Close()
	}
}
