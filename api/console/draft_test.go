package console

import (
	"net/url"
	"strings"
	"testing"

	"fingerpost/api/client"
)

// newTestSession returns a session of a key, which x has.
func newTestSession(x *sessions, key string) *session {
	s := &session{signIn: signIn{secret: random()}, key: Key{ID: key}}
	x.all[s.secret] = s
	return s
}

// What is not saved yet takes a bounded amount of memory: older changes are forgotten, the newest is kept.
func TestDraftsAreBounded(t *testing.T) {
	c := &Console{sessions: sessions{all: map[string]*session{}}}
	s := newTestSession(&c.sessions, "k")
	keep := func(bytes int) *draft {
		d := &draft{Diff: strings.Repeat("x", bytes/2), sent: url.Values{"bodyText": {strings.Repeat("x", bytes-bytes/2)}}}
		c.addDraft(s, d)
		return d
	}
	there := func(d *draft) bool { return s.draft(d.ID) == d }
	small := keep(10)
	for range 4 {
		if last := keep(1_000_000); !there(last) {
			t.Error("a change of 1 MB is forgotten at once")
		}
	}
	if !there(small) {
		t.Error("a small change is forgotten after 4 MB of others")
	}
	middle := keep(300_000)
	if there(small) || !there(middle) || len(s.kept) != 4 {
		t.Errorf("more than 4 MiB of unsaved changes are kept, or too few: %d", len(s.kept))
	}
	huge := keep(8 << 20)
	if !there(huge) || len(s.kept) != 1 {
		t.Errorf("next to one that is larger than the bound there are %d", len(s.kept)-1)
	}
	for range 20 {
		keep(1)
	}
	if len(s.kept) != maxDrafts || there(huge) {
		t.Errorf("%d small changes are kept, want %d", len(s.kept), maxDrafts)
	}
	d := keep(1)
	if s.takeDraft(d.ID) != d || s.takeDraft(d.ID) != nil {
		t.Error("a draft is used once")
	}
}

// TestSessionsShareABudget: all that the sessions of a key keep, drafts and previews, has one bound, and another key's
// sessions notice nothing of it.
func TestSessionsShareABudget(t *testing.T) {
	c := &Console{sessions: sessions{all: map[string]*session{}}}
	other := newTestSession(&c.sessions, "other")
	others := &draft{Diff: "mine"}
	c.addDraft(other, others)
	var last *session
	var frames []string
	total := func(key string) (n int) {
		for _, s := range c.sessions.all {
			if s.key.ID == key {
				n += s.keptBytes()
			}
		}
		return n
	}
	for range sessionsOfKey {
		last = newTestSession(&c.sessions, "k")
		frames = frames[:0]
		for range maxFrames {
			frames = append(frames, c.keepParts(last, 1, &client.Parts{BodyHTML: strings.Repeat("'", 500_000)}))
			c.addDraft(last, &draft{Diff: strings.Repeat("x", 100_000)})
			if n := total("k"); n > maxKeyBytes || last.keptBytes() > maxSessionBytes {
				t.Fatalf("the key's sessions keep %d bytes, this one %d", n, last.keptBytes())
			}
		}
	}
	if total("k") < maxKeyBytes/2 {
		t.Errorf("the key's sessions keep %d bytes only", total("k"))
	}
	if keptAs[frame](last, frames[len(frames)-1]) == nil || keptAs[draft](last, frames[0]) != nil {
		t.Error("the newest preview is forgotten, or is taken for a draft")
	}
	if other.draft(others.ID) != others {
		t.Error("another key's draft is forgotten")
	}
}
