package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

func randomMail(r *rand.Rand) (catalog.MailLog, queued, catalog.Idempotency) {
	text := func() string { return string(randomBytes(r)) }
	when := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return time.UnixMicro(r.Int64N(1 << 52)).UTC()
	}
	log := catalog.MailLog{
		ID: r.Int64N(1 << 53), ProjectID: r.Int64N(1 << 53), ProviderType: text(), ToEmail: text(), Subject: text(), TemplateCode: text(),
		Status: statusCodes[1+r.IntN(len(statusCodes)-1)], ErrorCode: catalog.Code(text()), ErrorMessage: text(), SMTPCode: r.IntN(600),
		MessageID: text(), ServiceName: text(), Attempts: r.IntN(100), Uncertain: r.IntN(2) == 0,
		CreatedAt: time.UnixMicro(r.Int64N(1 << 52)).UTC(), SentAt: when(), NextAttemptAt: when(),
	}
	if r.IntN(3) == 0 {
		log.AgainOf = 1 + r.Int64N(1<<52)
	}
	if r.IntN(3) == 0 {
		log.Locale = "x" + text()
	}
	for n := range r.IntN(catalog.MaxMailHistory + 1) {
		log.History = append(log.History, catalog.MailAttempt{Number: 1 + n, At: time.UnixMicro(r.Int64N(1 << 52)).UTC(), Stage: text(),
			Code: catalog.Code(text()), SMTPCode: r.IntN(600), Message: text()})
	}
	q := queued{project: log.ProjectID, created: log.CreatedAt, from: text(), to: text(), expiresAt: when()}
	i := catalog.Idempotency{ProjectID: log.ProjectID, Key: text(), LogID: log.ID, ExpiresAt: log.CreatedAt, Request: [32]byte{byte(r.IntN(256))}}
	if r.IntN(2) == 0 {
		i.Answer = randomBytes(r)
	}
	return log, q, i
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(60))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

func TestMailRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		log, q, i := randomMail(r)
		var gotLog catalog.MailLog
		err := decodeMailLog(&gotLog, log.ProjectID, posOf(log.CreatedAt, log.ID), appendMailLog(nil, &log))
		gotQ, errQ := decodeQueued(appendQueued(nil, &q))
		gotI, errI := decodeIdempotency(i.ProjectID, i.Key, appendIdempotency(nil, &i))
		row := mailCounts{r.Uint64(), 1, 2, 3, 4, 5}
		gotRow, errRow := decodeCounts(appendCounts(nil, &row))
		gap := MailGap{Found: log.SentAt, MovedTo: log.Subject, Complete: log.Uncertain, Reason: log.ToEmail, Entries: 1, Queued: 2, Lost: 3}
		gotGap, errGap := decodeGap(appendGap(nil, &gap))
		return errors.Join(err, errQ, errI, errRow, errGap) == nil && reflect.DeepEqual(gotLog, log) && gotQ == q &&
			reflect.DeepEqual(*gotI, i) && gotRow == row && gotGap == gap
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// FuzzMailRecords feeds damaged records to every decoder, and decodes what it can a second time after encoding it.
func FuzzMailRecords(f *testing.F) {
	log, q, i := randomMail(rand.New(rand.NewPCG(1, 1)))
	f.Add(appendMailLog(nil, &log))
	f.Add(appendQueued(nil, &q))
	f.Add(appendIdempotency(nil, &i))
	f.Add(appendCounts(nil, &mailCounts{1, 2}))
	f.Add(appendGap(nil, &MailGap{Reason: "x"}))
	f.Add([]byte{2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		var log, again catalog.MailLog
		pos := posOf(mailEpoch, 7)
		if decodeMailLog(&log, 3, pos, b) == nil {
			if err := decodeMailLog(&again, 3, pos, appendMailLog(nil, &log)); err != nil || !reflect.DeepEqual(log, again) {
				t.Errorf("%+v became %+v, %v", log, again, err)
			}
			if status, err := storedStatus(b); err != nil || statusCodes[status] != log.Status {
				t.Errorf("status %d of %+v, %v", status, log, err)
			}
		}
		if q, err := decodeQueued(b); err == nil {
			if p, err := decodeQueued(appendQueued(nil, &q)); err != nil || p != q {
				t.Errorf("%+v became %+v, %v", q, p, err)
			}
		}
		if i, err := decodeIdempotency(1, "k", b); err == nil {
			if j, err := decodeIdempotency(1, "k", appendIdempotency(nil, i)); err != nil || !reflect.DeepEqual(i, j) {
				t.Errorf("%+v became %+v, %v", i, j, err)
			}
		}
		_, _ = decodeCounts(b)
		_, _ = decodeGap(b)
		if !bytes.Equal(b, before) {
			t.Error("a decoder writes")
		}
	})
}

// TestMailKeysSortByTime: the key parts sort like the times, also before 1970.
func TestMailKeysSortByTime(t *testing.T) {
	t.Parallel()
	times := []time.Time{{}, time.UnixMicro(-1), time.UnixMicro(0), mailEpoch, mailEpoch.Add(time.Microsecond)}
	for i := 1; i < len(times); i++ {
		a, b := posOf(times[i-1], 9), posOf(times[i], 1)
		if a.compare(b) >= 0 || !a.created().Equal(times[i-1]) || a.id() != 9 {
			t.Errorf("%v, %v", a.created(), b.created())
		}
	}
	if a, b := posOf(mailEpoch, 1), posOf(mailEpoch, 1<<52); a.compare(b) >= 0 {
		t.Error("ids do not decide")
	}
}

func idempotencyOf(log *catalog.MailLog, key string) *catalog.Idempotency {
	return &catalog.Idempotency{ProjectID: log.ProjectID, Key: key, LogID: log.ID, ExpiresAt: log.CreatedAt.Add(24 * time.Hour)}
}

// TestOneMailAKey: of many concurrent calls with one key, one stores its mail, and all others get that mail.
func TestOneMailAKey(t *testing.T) {
	t.Parallel()
	s := mailStore(t, t.TempDir()+"/data", Options{})
	const callers = 32
	for round := range int64(20) {
		var winners, others sync.Map
		var all sync.WaitGroup
		for n := range int64(callers) {
			all.Go(func() {
				log, mail := newMail(1, 1000*round+n+1, mailEpoch)
				there, err := s.AcceptMail(log, mail, idempotencyOf(log, fmt.Sprint("key ", round)), mailEpoch)
				switch {
				case err != nil:
					t.Error(err)
				case there == nil:
					winners.Store(log.ID, true)
				default:
					others.Store(log.ID, there.LogID)
				}
			})
		}
		all.Wait()
		won := int64(0)
		winners.Range(func(id, _ any) bool {
			if won != 0 {
				t.Errorf("%d and %d have won", won, id)
			}
			won = id.(int64)
			return true
		})
		others.Range(func(id, of any) bool {
			if of != won {
				t.Errorf("%d is told of %d, and %d has won", id, of, won)
			}
			if _, found, _ := s.MailLog(1, id.(int64)); found {
				t.Errorf("%d is stored, too", id)
			}
			return true
		})
		if _, total, err := s.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1}); total != int(round)+1 || err != nil {
			t.Errorf("%d entries after %d, %v", total, round+1, err)
		}
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := mailStore(t, "", Options{})
	accept := func(project, id int64, key string, now time.Time) *catalog.Idempotency {
		t.Helper()
		log, mail := newMail(project, id, now)
		there, err := s.AcceptMail(log, mail, idempotencyOf(log, key), now)
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	answer := func(id int64, text string) {
		t.Helper()
		if err := s.AnswerMail(&catalog.Idempotency{ProjectID: 1, Key: "k", LogID: id, Answer: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if accept(1, 10, "k", mailEpoch) != nil || accept(2, 11, "k", mailEpoch) != nil {
		t.Error("the keys of two projects are one")
	}
	if there := accept(1, 12, "k", mailEpoch); there == nil || there.LogID != 10 || there.Answer != nil {
		t.Errorf("%+v", there)
	}
	answer(99, "another mail's")
	answer(10, "")
	answer(10, "a second one")
	if there := accept(1, 12, "k", mailEpoch); there == nil || there.Answer == nil || len(there.Answer) != 0 {
		t.Errorf("%+v", there)
	}
	day := mailEpoch.Add(24 * time.Hour)
	if _, found, _ := s.Idempotency(1, "k", day.Add(-time.Microsecond)); !found {
		t.Error("the key has gone too early")
	}
	if _, found, _ := s.Idempotency(1, "k", day); found {
		t.Error("the key has not expired")
	}
	if there := accept(1, 12, "k", day); there != nil {
		t.Errorf("after its time: %+v", there)
	}
	answer(10, "too late")
	if i, found, err := s.Idempotency(1, "k", day); !found || i.LogID != 12 || i.Answer != nil || err != nil {
		t.Errorf("%+v, %v, %v", i, found, err)
	}
	for n := range int64(2500) { // more than a turn deletes
		accept(3, 1000+n, fmt.Sprint(n), mailEpoch.Add(time.Second))
	}
	if err := s.PruneMail(mailEpoch, day.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := countKeys(s, "IX"); n != 2 || err != nil { // those of 12
		t.Errorf("%d keys are left, %v", n, err)
	}
}

func TestMailIsRefused(t *testing.T) {
	t.Parallel()
	s := mailStore(t, "", Options{})
	log, mail := newMail(1, 5, mailEpoch)
	for what, spoil := range map[string]func(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency){
		"no id": func(log *catalog.MailLog, mail *catalog.QueuedMail, _ *catalog.Idempotency) {
			log.ID, mail.LogID = 0, 0
		},
		"no project": func(log *catalog.MailLog, mail *catalog.QueuedMail, _ *catalog.Idempotency) { log.ProjectID = 0 },
		"no time":    func(log *catalog.MailLog, _ *catalog.QueuedMail, _ *catalog.Idempotency) { log.CreatedAt = time.Time{} },
		"no status":  func(log *catalog.MailLog, _ *catalog.QueuedMail, _ *catalog.Idempotency) { log.Status = "" },
		"an end": func(log *catalog.MailLog, _ *catalog.QueuedMail, _ *catalog.Idempotency) {
			log.Status = catalog.MailSent
		},
		"another message":  func(_ *catalog.MailLog, mail *catalog.QueuedMail, _ *catalog.Idempotency) { mail.LogID = 6 },
		"another's key":    func(_ *catalog.MailLog, _ *catalog.QueuedMail, idem *catalog.Idempotency) { idem.LogID = 6 },
		"an empty key":     func(_ *catalog.MailLog, _ *catalog.QueuedMail, idem *catalog.Idempotency) { idem.Key = "" },
		"another project":  func(_ *catalog.MailLog, mail *catalog.QueuedMail, _ *catalog.Idempotency) { mail.ProjectID = 2 },
		"a project's key":  func(_ *catalog.MailLog, _ *catalog.QueuedMail, idem *catalog.Idempotency) { idem.ProjectID = 2 },
		"unknown statuses": func(log *catalog.MailLog, _ *catalog.QueuedMail, _ *catalog.Idempotency) { log.Status = "LOST" },
	} {
		l, m, i := *log, *mail, *idempotencyOf(log, "k")
		spoil(&l, &m, &i)
		if _, err := s.AcceptMail(&l, &m, &i, mailEpoch); err == nil {
			t.Errorf("with %s it is accepted", what)
		}
	}
	if n, err := countKeys(s, "ELNQIXM"); n != 0 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	if _, err := s.AcceptMail(log, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	other := *log
	other.ID, other.Status = 7, catalog.MailRetrying
	if err := s.UpdateMail(&other); !errors.Is(err, ErrNoMail) {
		t.Errorf("an update of nothing: %v", err)
	}
	other.Status = catalog.MailSent // its entry was lost, and a SENT mail must not be stored without one
	if err := s.UpdateMail(&other); err != nil {
		t.Error(err)
	}
	if _, total, err := s.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1}); total != 2 || err != nil {
		t.Errorf("%d entries, %v", total, err)
	}
	if s.Err() != nil {
		t.Errorf("a refusal takes the store for failed: %v", s.Err())
	}
	checkCounts(t, s)
}

// TestNewerMailRecord: a record of a later release is an error for its reader only.
func TestNewerMailRecord(t *testing.T) {
	t.Parallel()
	s := mailStore(t, "", Options{})
	log, mail := newMail(1, 5, mailEpoch)
	if _, err := s.AcceptMail(log, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	key := appendMailKey(nil, 1, posOf(log.CreatedAt, log.ID))
	rec := appendMailLog(nil, log)
	rec[0] = suppressedVersion + 1
	if err := s.db.Set(key, rec, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 10}); !errors.Is(err, ErrNewer) {
		t.Errorf("list: %v", err)
	}
	log.Status = catalog.MailSent
	if err := s.UpdateMail(log); !errors.Is(err, ErrNewer) {
		t.Errorf("update: %v", err)
	}
	if s.Err() != nil {
		t.Errorf("it is taken for damage: %v", s.Err())
	}
}

// TestPagesFarDown reads pages from a log larger than maxSorted, sorted by fields other than createdAt.
func TestPagesFarDown(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	const limit = 100
	entries := testrig.Size(t, 50_000, 17_000)
	s := mailStore(t, "", Options{})
	fillMailLog(t, s, entries)
	m := &mailModel{logs: make(map[int64]catalog.MailLog, entries)}
	if err := s.readMail(1, func(r *mailReader) error {
		l := mailList{mailReader: r}
		return l.walk(false, func(p mailPos, rec []byte, _ *catalog.MailLog) error {
			var log catalog.MailLog
			err := decodeMailLog(&log, 1, p, rec)
			m.logs[p.id()] = log
			return err
		})
	}); err != nil || len(m.logs) != entries {
		t.Fatal(len(m.logs), err)
	}
	orders := []catalog.MailQuery{{Sort: "subject"}, {}, {Sort: "messageId", Ascending: true}, {Sort: "status"}}
	for _, q := range orders[:testrig.Size(t, len(orders), 2)] {
		q.Page, q.Limit = 1, entries
		all, _ := m.list(1, q)
		q.Limit = limit
		for _, q.Page = range []int{1, 164, 165, 320, 499, 500, 501} {
			page, total, err := s.MailLogs(1, q)
			want := all[min(entries, (q.Page-1)*limit):min(entries, q.Page*limit)]
			if err != nil || total != entries || len(page) != len(want) || len(page) > 0 && !reflect.DeepEqual(page, want) {
				t.Errorf("%+v: %d of %d, %v", q, len(page), total, err)
			}
		}
	}
}

// TestPruneInTurns prunes more entries than one turn reads; entries that are not final, and young ones, stay.
func TestPruneInTurns(t *testing.T) {
	t.Parallel()
	const entries = 2*entriesPerTurn + 500
	s := mailStore(t, "", Options{})
	fillMailLog(t, s, entries)
	waiting, mail := newMail(1, entries+1, mailEpoch.Add(entriesPerTurn*time.Millisecond))
	if _, err := s.AcceptMail(waiting, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	if err := s.PruneMail(mailEpoch.Add((entries-99)*time.Millisecond), mailEpoch); err != nil {
		t.Fatal(err)
	}
	page, total, err := s.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1000})
	if err != nil || total != 100+1 || len(page) != total || page[100].ID != waiting.ID {
		t.Errorf("%d entries of %d, %v", len(page), total, err)
	}
	checkCounts(t, s)
}

func TestMailLogsTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query, address string
		want           bool
	}{
		{"ann@acme.example", "Ann@ACME.example", true},
		{"ann@acme.example", "anna@acme.example", false},
		{"ann@bücher.example", "ann@xn--bcher-kva.example", true},
		{"ANN@XN--BCHER-KVA.example", "ann@Bücher.example", true},
		{"ann@mail.bücher.example", "ann@mail.xn--bcher-kva.example", true},
		{"ann@bücher.example", "ann@bucher.example", false},
		{"ann@bücher.example", "bob@xn--bcher-kva.example", false},
		{"ann@bücher.example", "", false},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", true}, // not an address: compared as it is
	} {
		l := mailList{q: catalog.MailQuery{ToEmail: c.query}, toIDN: canonicalIDN(c.query)}
		if got := l.isTo(c.address); got != c.want {
			t.Errorf("%q finds %q: %t", c.query, c.address, got)
		}
	}
}
