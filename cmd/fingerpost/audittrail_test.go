package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
)

// An auditReplay knows which writes were answered, by request id, and replays the audit trail.
type auditReplay struct {
	mu       sync.Mutex // guards the fields below
	sent     int
	answered map[string]bool // whose entry was not seen yet
	seen     map[string]bool

	replayed int                          // entries
	objects  map[string]map[string]string // the values of each object's fields, as JSON
}

// request returns a new request id.
func (w *auditReplay) request() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	return fmt.Sprint("write-", w.sent)
}

// ok notes that a write was answered.
func (w *auditReplay) ok(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered == nil {
		w.answered = map[string]bool{}
	}
	w.answered[id] = true
}

// checkTrail replays what is new in the trail: every entry tells of a change from what the entries before it have left,
// and every answered write has exactly one entry for its project.
func (s *siege) checkTrail() error {
	w := s.trail
	for {
		var list struct {
			Data []client.AuditEntry
		}
		got := s.get(fmt.Sprintf("/api/platform/audit?order=asc&limit=100&page=%d", w.replayed/100+1))
		if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
			return fmt.Errorf("the audit trail: %d %s", got.status, got.body)
		}
		fresh := list.Data[min(w.replayed%100, len(list.Data)):]
		for i := range fresh {
			if err := w.replay(&fresh[i]); err != nil {
				return fmt.Errorf("entry %d, %s: %w", fresh[i].ID, fresh[i].Action, err)
			}
			w.replayed++
		}
		if len(list.Data) < 100 {
			break
		}
	}
	for id := range w.answered {
		if !w.seen[id] {
			return fmt.Errorf("the write %s was answered and has no entry", id)
		}
		delete(w.answered, id)
	}
	return nil
}

func (w *auditReplay) replay(e *client.AuditEntry) error {
	noun, verb, _ := strings.Cut(e.Action, ".")
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	if verb == "load" { // also after a power cut so early that the store is empty: no single object is told of
		w.objects = map[string]map[string]string{}
	}
	if id := orEmpty(e.RequestID); id != "" && noun == "project" {
		if w.seen[id] {
			return fmt.Errorf("the write %s has a second entry", id)
		}
		w.seen[id] = true
	}
	key := noun + orEmpty(e.Object)
	is, known := w.objects[key]
	switch {
	case verb == "create" && is != nil:
		return fmt.Errorf("it was there already")
	case known && is == nil && verb != "create":
		return fmt.Errorf("it was not there")
	}
	next := map[string]string{}
	for field, v := range is {
		next[field] = v
	}
	for _, c := range e.Changes {
		if was, told := next[c.Field]; told && was != string(c.Before) {
			return fmt.Errorf("%s was %s", c.Field, was)
		}
		next[c.Field] = string(c.After)
	}
	if reflect.DeepEqual(is, next) {
		return fmt.Errorf("it tells of nothing new")
	}
	if w.objects[key] = next; verb == "delete" {
		w.objects[key] = nil
	}
	return nil
}

// chainsHold checks the hashes of the trail in a data folder, once the server does not run.
func (s *siege) chainsHold(data string) {
	s.t.Helper()
	if printed, code := s.run("audit", "verify", "--data", data); code != cli.ExitOK || !strings.Contains(printed, "all links hold") {
		s.t.Errorf("audit verify exits with %d: %s", code, printed)
	}
	s.t.Logf("%d entries in the audit trail", s.trail.replayed)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
