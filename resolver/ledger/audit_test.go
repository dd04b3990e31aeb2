package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// auditEntry makes an entry whose content depends on n only.
func auditEntry(n int) catalog.AuditEntry {
	return catalog.AuditEntry{
		Time: mailEpoch.Add(time.Duration(n) * time.Hour), Generation: uint64(n), Action: []string{"project.update", "domain.create"}[n%2],
		ProjectID: int64(n % 3), Slug: []string{"", "acme", "globex"}[n%3], Object: fmt.Sprint("object-", n), Door: catalog.DoorAPI, Actor: fmt.Sprintf("Ann <a%d@b.example>", n%5),
		Key: "ci", RequestID: fmt.Sprint("r", n/2),
		Changes: []catalog.FieldChange{{Field: "name", Before: "a", After: "b"}, {Field: "password", Secret: true}},
	}
}

func appendAll(t *testing.T, l *Ledger, entries ...catalog.AuditEntry) {
	t.Helper()
	if _, err := l.AppendAudit(slices.Clone(entries), 0, map[int64]int{1: 30}); err != nil {
		t.Fatal(err)
	}
}

func verified(t *testing.T, l *Ledger, head [32]byte) AuditCheck {
	t.Helper()
	check, err := l.VerifyAudit(head)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

func TestAuditRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	values := func(r *rand.Rand) any {
		return []any{nil, r.IntN(2) == 0, r.Int64() - 1<<62, string(randomBytes(r)), []string{}, []string{"a", ""},
			map[string]string{}, map[string]string{"b": "1", "a": string(randomBytes(r))}}[r.IntN(8)]
	}
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() string { return string(randomBytes(r)) }
		want := catalog.AuditEntry{
			ID: r.Int64(), Time: time.UnixMicro(r.Int64N(1 << 52)).UTC(), Generation: r.Uint64(), Action: text(), ProjectID: r.Int64(),
			Slug: text(), Object: text(), Door: catalog.Door(text()), Actor: text(), Key: text(), RequestID: text(), Commit: text(), Prev: [32]byte{byte(seed)},
			Subject: []string{"", text()}[r.IntN(2)],
		}
		for range r.IntN(4) {
			want.Changes = append(want.Changes, catalog.FieldChange{Field: text(), Secret: r.IntN(2) == 0, Before: values(r), After: values(r)})
		}
		rec := appendAudit(nil, &want)
		want.Hash = auditHash(rec)
		var got catalog.AuditEntry
		if err := decodeAudit(&got, appendAuditKey(nil, want.ID), rec); err != nil || !reflect.DeepEqual(got, want) {
			t.Logf("%+v\n%+v, %v", want, got, err)
			return false
		}
		for n := range rec { // no prefix of a record is one
			if decodeAudit(&got, appendAuditKey(nil, want.ID), rec[:n]) == nil {
				return false
			}
		}
		return true
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestAuditQueries(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{})
	const n = 60
	var all []catalog.AuditEntry // the latest first
	for i := 0; i < n; i += 3 {
		appendAll(t, l, auditEntry(i), auditEntry(i+1), auditEntry(i+2))
	}
	for i := range n {
		e := auditEntry(i)
		e.ID = int64(i + 1)
		all = slices.Insert(all, 0, e)
	}
	for name, q := range map[string]catalog.AuditQuery{
		"all": {}, "project": {ProjectID: 2}, "no such project": {ProjectID: 7}, "actor": {Actor: "Ann <a3@b.example>"}, "key": {Actor: "ci"},
		"action": {Action: "domain.create"}, "request": {RequestID: "r7"}, "newest": {Newest: 20}, "request among the newest": {RequestID: "r28", Newest: 3},
		"older request": {RequestID: "r7", Newest: 20}, "newest of a project": {ProjectID: 2, Newest: 20, Ascending: true}, "nobody": {Actor: "x"},
		"time":             {From: mailEpoch.Add(5 * time.Hour), To: mailEpoch.Add(20 * time.Hour)},
		"project and time": {ProjectID: 1, From: mailEpoch.Add(5 * time.Hour)},
		"covered":          {Covers: func(p int64) bool { return p == 1 }},
		"the oldest first": {Ascending: true}, "of a project": {Ascending: true, ProjectID: 2, From: mailEpoch.Add(5 * time.Hour)},
		"not covered":    {ProjectID: 1, Covers: func(p int64) bool { return p == 2 }},
		"covers nothing": {Covers: func(p int64) bool { return p == 0 }}, // entries of no project are not for project keys
	} {
		var want []int64
		for i := range all {
			e := &all[i]
			if (q.ProjectID == 0 || e.ProjectID == q.ProjectID) && (q.Actor == "" || e.Actor == q.Actor || e.Key == q.Actor) &&
				(q.Action == "" || e.Action == q.Action) && (q.RequestID == "" || e.RequestID == q.RequestID) &&
				(q.From.IsZero() || !e.Time.Before(q.From)) && (q.To.IsZero() || e.Time.Before(q.To)) &&
				(q.Newest == 0 || e.ID > n-q.Newest) &&
				(q.Covers == nil || e.ProjectID != 0 && q.Covers(e.ProjectID)) {
				want = append(want, e.ID)
			}
		}
		if q.Ascending {
			slices.Reverse(want)
		}
		var got []int64
		for q.Page, q.Limit = 1, 7; ; q.Page++ {
			page, err := l.Audit(q)
			if err != nil {
				t.Fatal(name, err)
			}
			if page.Total != int64(len(want)) {
				t.Errorf("%s: total %d, want %d", name, page.Total, len(want))
			}
			for _, e := range page.Entries {
				got = append(got, e.ID)
			}
			if len(page.Entries) == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if check := verified(t, l, [32]byte{}); check.Broken != nil || check.Entries != n || check.Chains != 3 || check.HeadFound {
		t.Errorf("%+v", check)
	}
}

// Whatever is changed in the trail, verify names the first link that does not hold.
func TestAuditTampering(t *testing.T) {
	t.Parallel()
	const n = 12
	change := func(l *Ledger, key []byte, f func(rec []byte) []byte) {
		rec, closer, err := l.db.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		rec = slices.Clone(rec)
		closer.Close()
		if rec = f(rec); rec == nil {
			err = l.db.Delete(key, pebble.NoSync)
		} else {
			err = l.db.Set(key, rec, pebble.NoSync)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func([]byte) []byte { return nil }
	rewrite := func(rec []byte) []byte { return []byte(strings.Replace(string(rec), "object", "OBJECT", 1)) }
	for name, c := range map[string]struct {
		tamper  func(l *Ledger)
		project int64
		entry   int64
	}{
		"changed":            {func(l *Ledger) { change(l, appendAuditKey(nil, 5), rewrite) }, 1, 8},
		"the last changed":   {func(l *Ledger) { change(l, appendAuditKey(nil, 11), rewrite) }, 1, 11},
		"removed":            {func(l *Ledger) { change(l, appendAuditKey(nil, 5), remove) }, 1, 5},
		"removed from index": {func(l *Ledger) { change(l, appendAuditOfKey(nil, 1, 5), remove) }, 1, 8},
		"the first removed": {func(l *Ledger) {
			change(l, appendAuditOfKey(nil, 1, 2), remove)
			change(l, appendAuditKey(nil, 2), remove)
		}, 1, 5},
		"the last removed": {func(l *Ledger) {
			change(l, appendAuditOfKey(nil, 1, 11), remove)
			change(l, appendAuditKey(nil, 11), remove)
		}, 1, 11},
		"in no chain": {func(l *Ledger) {
			c := AuditChain{Project: 1}
			change(l, appendChainKey(nil, 1), func([]byte) []byte { return appendChain(nil, &c) })
			for _, id := range []int64{2, 5, 8, 11} {
				change(l, appendAuditOfKey(nil, 1, id), remove)
			}
		}, 0, 0},
	} {
		l := mailStore(t, "", Options{})
		for i := range n {
			appendAll(t, l, auditEntry(i))
		}
		c.tamper(l)
		if check := verified(t, l, [32]byte{}); check.Broken == nil || check.Broken.Project != c.project || check.Broken.Entry != c.entry {
			t.Errorf("%s: %+v", name, check.Broken)
		}
	}
}

// A tail that was cut together with the end of the chain shows against an earlier head only.
func TestAuditCutTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mailStore(t, filepath.Join(dir, "a"), Options{})
	appendAll(t, l, auditEntry(1), auditEntry(4))
	var head [32]byte
	if err := l.AuditChains(func(c *AuditChain) error { head = c.Head; return nil }); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, auditEntry(7))
	if check := verified(t, l, head); !check.HeadFound || check.Broken != nil {
		t.Errorf("%+v", check)
	}
	cut := mailStore(t, filepath.Join(dir, "b"), Options{})
	appendAll(t, cut, auditEntry(1))
	if check := verified(t, cut, head); check.HeadFound || check.Broken != nil {
		t.Errorf("%+v", check)
	}
}

func TestAuditRetention(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{})
	const n = 3 * (entriesPerTurn + 50)
	entries := make([]catalog.AuditEntry, n)
	for i := range entries {
		entries[i] = auditEntry(i)
		entries[i].Time = mailEpoch.Add(time.Duration(i) * time.Minute)
	}
	appendAll(t, l, entries...)
	left := func(project int64) int64 {
		page, err := l.Audit(catalog.AuditQuery{ProjectID: project, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return page.Total
	}
	all := left(1)
	prune := func(now time.Time, days func(project int64) int) {
		t.Helper()
		if err := l.PruneAudit(t.Context(), now, days); err != nil {
			t.Fatal(err)
		}
		if check := verified(t, l, [32]byte{}); check.Broken != nil {
			t.Fatalf("%+v", check.Broken)
		}
	}
	end := mailEpoch.Add(n * time.Minute)
	prune(end.AddDate(0, 0, 2), func(project int64) int { return []int{90, 90, 2}[project] }) // project 2 keeps nothing
	if left(1) != all || left(2) != 0 {
		t.Errorf("%d of %d left, %d", left(1), all, left(2))
	}
	appendAll(t, l, auditEntry(2)) // its chain goes on
	prune(end, func(int64) int { return 90 })
	// Project 1 is gone: its entries are kept as long as they would have been, 90 days since the last prune.
	prune(end.AddDate(0, 0, 89), func(project int64) int { return int(90 * (1 - project%2)) })
	if got := left(1); got == 0 || got == all {
		t.Errorf("%d of %d left", got, all)
	}
	prune(end.AddDate(0, 0, 91), func(project int64) int { return int(90 * (1 - project%2)) })
	if err := l.AuditChains(func(c *AuditChain) error {
		if c.Project == 1 {
			t.Error("a project that is gone has kept its chain")
		}
		return nil
	}); err != nil || left(1) != 0 {
		t.Error(left(1), err)
	}
}

// Power cuts: every entry whose append has returned is there once, those of a batch are there together, chains hold.
func TestAuditPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewCrashableMem()
		l := mailStore(t, "ledger", Options{FS: mem})
		appended := 0
		for range 30 {
			batch := 1 + r.IntN(3)
			for range batch {
				appendAll(t, l, auditEntry(appended))
				appended++
			}
			image := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			after := mailStore(t, "ledger", Options{FS: image})
			page, err := after.Audit(catalog.AuditQuery{Limit: 1})
			if err != nil || page.Total != int64(appended) || page.Entries[0].ID != int64(appended) || after.LastAudit() != int64(appended) {
				t.Fatalf("%d entries of %d, %v", page.Total, appended, err)
			}
			if check := verified(t, after, [32]byte{}); check.Broken != nil {
				t.Fatalf("%+v", check.Broken)
			}
			if err := after.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The trail of a damaged ledger is copied as it is, in several attempts too, and goes on behind.
func TestAuditSalvage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		appendAll(t, before, auditEntry(i))
	}
	err = before.PruneAudit(t.Context(), mailEpoch.Add(4*time.Hour), func(int64) int { return 0 }) // nothing
	if err == nil {
		err = before.PruneAudit(t.Context(), mailEpoch.AddDate(0, 0, 1).Add(4*time.Hour), func(project int64) int { return 1 })
	}
	if err = errors.Join(err, before.Close()); err != nil {
		t.Fatal(err)
	}
	aside := dir + ".damaged-1"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, dir, Options{})
	for range 2 { // an attempt that did not end is repeated
		v, err := l.OpenSalvage(t.Context(), aside, nil, slog.New(slog.DiscardHandler))
		if err == nil {
			err = v.Copy(t.Context())
		}
		if err != nil || !v.gap.Complete {
			t.Fatal(v.gap, err)
		}
		if err := v.Abandon(); err != nil {
			t.Fatal(err)
		}
	}
	appendAll(t, l, auditEntry(1))
	page, err := l.Audit(catalog.AuditQuery{Limit: 1})
	if check := verified(t, l, [32]byte{}); err != nil || check.Broken != nil || page.Total != 9 || page.Entries[0].ID != 13 {
		t.Errorf("%+v, %+v, %v", page, check, err)
	}
}

// TestAuditSalvageOfAnEmptyChain: a chain of which retention has left no entry goes on from the hash of its last one.
func TestAuditSalvageOfAnEmptyChain(t *testing.T) {
	t.Parallel()
	aside := filepath.Join(t.TempDir(), "data.damaged-1")
	before, err := Open(aside, Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, before, auditEntry(1), auditEntry(1))
	head, err := before.chain(auditEntry(1).ProjectID)
	err = errors.Join(err, before.PruneAudit(t.Context(), mailEpoch.AddDate(1, 0, 0), func(int64) int { return 1 }), before.Close())
	if err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, "", Options{Logger: quiet})
	v, err := l.OpenSalvage(t.Context(), aside, nil, quiet)
	if err == nil {
		err = errors.Join(v.Copy(t.Context()), v.Abandon())
	}
	if err != nil || !v.gap.Complete {
		t.Fatal(v.gap, err)
	}
	appendAll(t, l, auditEntry(1))
	check := verified(t, l, head.Head)
	if check.Broken != nil || len(check.Gaps) > 0 || check.Entries != 1 || !check.HeadFound || head.Entries != 2 {
		t.Errorf("%+v after %+v", check, head)
	}
}

// Where damage has cut the trail, the salvaged one says so, as long as retention has not passed the place; a link that
// somebody breaks elsewhere is still found.
func TestAuditGaps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 { // project 1 has the ids 2, 5, 8, …
		appendAll(t, before, auditEntry(i))
	}
	lose := func(l *Ledger, ids ...int64) {
		for _, id := range ids {
			err = errors.Join(err, l.db.Delete(appendAuditKey(nil, id), pebble.Sync), l.db.Delete(appendAuditOfKey(nil, (id-1)%3, id), pebble.Sync))
		}
	}
	lose(before, 1, 8, 11, 29, 30) // the first of 0, two in the middle of 1, the last of 1 and of 2
	if err = errors.Join(err, before.Close(), os.Rename(dir, dir+".damaged-1")); err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, dir, Options{})
	for range 2 { // an attempt that did not end is repeated
		v, err := l.OpenSalvage(t.Context(), dir+".damaged-1", nil, slog.New(slog.DiscardHandler))
		if err == nil {
			err = errors.Join(v.Copy(t.Context()), v.Abandon())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	places := func() (got []string) {
		for _, g := range verified(t, l, [32]byte{}).Gaps {
			got = append(got, fmt.Sprint(g.Project, " after ", g.After))
			if g.MovedTo != "data.damaged-1" || g.Found.IsZero() || g.Any {
				t.Errorf("%+v", g)
			}
		}
		return got
	}
	want := []string{"0 after 0", "1 after 5", "1 after 26", "2 after 27"}
	if got := places(); !slices.Equal(got, want) || verified(t, l, [32]byte{}).Broken != nil {
		t.Errorf("gaps %q, want %q; %+v", got, want, verified(t, l, [32]byte{}))
	}
	for i := 30; i < 36; i++ { // the chains go on
		appendAll(t, l, auditEntry(i))
	}
	if check := verified(t, l, [32]byte{}); check.Broken != nil {
		t.Errorf("%+v", check.Broken)
	}
	// Up to the entry 5 of project 1, then up to 20.
	cut := func(hours int, want ...string) {
		t.Helper()
		err := l.PruneAudit(t.Context(), mailEpoch.AddDate(0, 0, 1).Add(time.Duration(hours)*time.Hour), func(project int64) int { return 1 })
		if got := places(); err != nil || !slices.Equal(got, want) || verified(t, l, [32]byte{}).Broken != nil {
			t.Errorf("gaps %q, want %q; %v", got, want, err)
		}
	}
	cut(5, "1 after 5", "1 after 26", "2 after 27")
	cut(20, "1 after 26", "2 after 27")
	lose(l, 23)
	if check := verified(t, l, [32]byte{}); check.Broken == nil || check.Broken.Entry != 26 {
		t.Errorf("a removed entry: %+v", check.Broken)
	}

	// A ledger of which nothing can be read.
	empty := dir + ".damaged-2"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := &Salvage{to: l, from: &rows{}, began: time.Now(), gap: MailGap{MovedTo: filepath.Base(empty)}}
	if err := v.Copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := func() (n int) {
		gaps, err := l.AuditGaps()
		for _, g := range gaps {
			if g.Any && g.MovedTo == "data.damaged-2" {
				n++
			}
		}
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, days := range []int{0, 299, 301} {
		err := l.PruneAudit(t.Context(), v.began.AddDate(0, 0, days), func(int64) int { return 300 })
		if got := lost() == 1; err != nil || got != (days < 300) {
			t.Errorf("after %d days: %v, %v", days, got, err)
		}
	}
}

// A ledger of a build before the first release is refused, with what to do, and is not changed.
func TestOlderFormat(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.db.Set(keyFormat, []byte{Format - 1}, pebble.Sync), l.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "ledger format 1, this release reads 2); nothing was changed: move the folder away") {
			t.Fatalf("%v", err)
		}
	}
}

// An entry from the future, which a clock that was ahead has written, goes with the entry after it.
func TestAuditRetentionAfterAClockAhead(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{})
	at := func(days int) catalog.AuditEntry {
		e := auditEntry(1)
		e.Time = mailEpoch.AddDate(0, 0, days)
		return e
	}
	appendAll(t, l, at(5000), at(0), at(5001), at(5002), at(1), at(100), at(6000))
	if err := l.PruneAudit(t.Context(), mailEpoch.AddDate(0, 0, 110), func(int64) int { return 90 }); err != nil {
		t.Fatal(err)
	}
	page, err := l.Audit(catalog.AuditQuery{ProjectID: 1, Limit: 10})
	if err != nil || page.Total != 2 || !page.Entries[1].Time.Equal(at(100).Time) {
		t.Errorf("%+v, %v", page, err)
	}
	if check := verified(t, l, [32]byte{}); check.Broken != nil {
		t.Errorf("%+v", check.Broken)
	}
}
