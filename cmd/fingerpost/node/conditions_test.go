package node

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A trailRig is a conditionTrail on a real ledger, with a clock that the test moves.
type trailRig struct {
	*conditionTrail
	t        *testing.T
	resolver *resolver.Resolver
	now      time.Time
	refusal  error // of mayWrite
}

func newTrailRig(t *testing.T) *trailRig {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	rig := &trailRig{t: t, resolver: r, now: time.Now()}
	rig.restart()
	return rig
}

func (r *trailRig) restart() {
	r.conditionTrail = &conditionTrail{after: time.Minute, trail: r.resolver, slug: func(project int64) string { return "acme" },
		mayWrite: func() error { return r.refusal }, log: slog.New(slog.DiscardHandler)}
}

// looks has the trail look every five seconds for as long as is given.
func (r *trailRig) looks(long time.Duration, list ...conditions.Condition) {
	for end := r.now.Add(long); r.now.Before(end); r.now = r.now.Add(5 * time.Second) {
		r.look(r.now, list)
	}
}

// has checks the entries about conditions, the oldest first.
func (r *trailRig) has(want ...string) []catalog.AuditEntry {
	r.t.Helper()
	var got []string
	page, err := r.resolver.Audit(catalog.AuditQuery{Ascending: true, Page: 1, Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	entries := slices.DeleteFunc(page.Entries, func(e catalog.AuditEntry) bool { return !strings.HasPrefix(e.Action, "condition.") })
	for i := range entries {
		e := &entries[i]
		got = append(got, strings.TrimPrefix(e.Action, "condition.")+" "+e.Object)
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("the trail has %q, want %q", got, want)
	}
	return entries
}

// TestConditionTrail: the trail tells once when a condition has begun and once when it has ended, over restarts, with what
// a person must know; and while it cannot, it tells later what is still so.
func TestConditionTrail(t *testing.T) {
	t.Parallel()
	r := newTrailRig(t)
	broken := conditions.Condition{ID: "files-broken", Sentence: "The files have 1 error.", Detail: "acme.hcl:5: unknown status"}
	mail := conditions.Condition{ID: "mail-stopped", Subject: "project acme", Project: 7, Sentence: "No mail of Acme is sent."}
	r.refusal = errors.New("another authority has the lease")
	r.looks(time.Hour, broken)
	r.has()
	r.refusal = nil
	r.looks(30*time.Second, broken, mail)
	r.has()
	r.restart()
	r.looks(2*time.Minute, broken, mail)
	entries := r.has("begins files-broken", "begins mail-stopped project acme")
	r.restart()
	r.looks(5*time.Minute, mail, broken)
	r.has("begins files-broken", "begins mail-stopped project acme")
	r.looks(10 * time.Second)
	r.restart()
	r.looks(time.Hour)
	r.has("begins files-broken", "begins mail-stopped project acme", "ends files-broken", "ends mail-stopped project acme")
	r.restart()
	r.looks(time.Hour)
	r.has("begins files-broken", "begins mail-stopped project acme", "ends files-broken", "ends mail-stopped project acme")

	values := map[string]any{}
	for _, c := range entries[0].Changes {
		values[c.Field] = c.After
	}
	if e := entries[0]; e.ProjectID != 0 || e.Actor != "" || e.Key != "" || e.Door != catalog.DoorFile || values["severity"] != "warning" ||
		values["sentence"] != broken.Sentence || values["detail"] != broken.Detail || values["since"] == nil ||
		!strings.Contains(values["remedy"].(string), "validate") || values["guide"] != "/docs/alerts#fingerpostfilesquarantined" {
		t.Errorf("%+v", e)
	}
	if e := entries[1]; e.ProjectID != 7 || e.Slug != "acme" {
		t.Errorf("%+v", e)
	}
}

// TestConditionTrailNote: a note that cannot be read has everything told again, once.
func TestConditionTrailNote(t *testing.T) {
	t.Parallel()
	r := newTrailRig(t)
	conflict := conditions.Condition{ID: "git-conflict", Sentence: "Git needs a person."}
	r.looks(2*time.Minute, conflict)
	if err := r.resolver.SetNamed(map[string][]byte{begunNote: []byte("[{")}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.restart()
		r.looks(2*time.Minute, conflict)
		r.has("begins git-conflict", "begins git-conflict")
	}
}
