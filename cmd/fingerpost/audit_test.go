package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/node"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// --follow prints what comes, once, and says once that the server fails.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	asked := 0
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/platform/audit" {
			return false
		}
		asked++
		if asked == 3 || asked == 4 {
			refuse(w, 500, "INTERNAL_ERROR", "broken")
			return true
		}
		q := r.URL.Query()
		page, _ := strconv.Atoi(q.Get("page"))
		var rows []object
		for id := range asked { // one more at each call
			rows = append(rows, object{"id": id + 1, "time": fmt.Sprintf("2026-01-31T09:30:%02d.000000", id), "generation": 1, "action": "project.update",
				"projectId": 101, "object": "a\x1b[31mcme", "changes": []object{{"field": "password", "secret": true, "before": nil, "after": nil}},
				"door": "api", "actor": "Ada <ada@acme.example>", "key": "ci", "requestId": "r", "commit": nil, "hash": strings.Repeat("0", 64)})
		}
		if q.Get("order") != "asc" {
			rows = rows[len(rows)-1:]
		}
		if page > 1 {
			rows = nil
		}
		_ = json.NewEncoder(w).Encode(object{"success": true, "message": "ok", "data": rows, "meta": object{"total": len(rows), "page": page, "limit": 100, "totalPages": 1}})
		return true
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{line: "#8", stop: stop}
	var errs bytes.Buffer
	args := []string{"audit", "--url", f.URL, "--key", "k", "--follow", "--every", "10ms", "--limit", "1"}
	if code := runContext(ctx, args, cli.Terminal{Out: out, Err: &errs}); code != cli.ExitOK {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	for id := 1; id <= 8; id++ {
		if n := strings.Count(out.text.String(), fmt.Sprintf("#%d\n", id)); n != 1 {
			t.Errorf("entry %d is printed %d times", id, n)
		}
	}
	if text := out.text.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "by Ada <ada@acme.example> with ci  password  #") {
		t.Errorf("%q", text)
	}
	if n := strings.Count(errs.String(), "asking on"); n != 1 {
		t.Errorf("stderr: %s", errs.String())
	}
}

// A stopAfter is an output that calls stop when it has got a text.
type stopAfter struct {
	text bytes.Buffer
	line string
	stop func()
}

func (s *stopAfter) Write(b []byte) (int, error) {
	s.text.Write(b)
	if bytes.Contains(b, []byte(s.line)) {
		s.stop()
	}
	return len(b), nil
}

// The log has the heads of the chains that have grown, and each of them is found by verify later on.
func TestAuditHeadsAreLogged(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: 4 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(slug, name string) {
		t.Helper()
		p := catalog.ProjectConfig{Project: catalog.Project{ID: int64(len(slug)), UUID: catalog.DeriveProjectUUID(slug), Slug: slug, Name: name, Status: catalog.StatusDraft},
			Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
		file := catalog.FileChange{Path: slug + ".hcl", Row: new(catalog.FileRow), Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}}}
		if _, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{file}}); err != nil {
			t.Fatal(err)
		}
	}
	apply("first", "First")
	for n := range node.MaxHeads + 2 {
		apply(strings.Repeat("a", n+10), "New")
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	last := node.LogHeads(r, logger, 0)
	if n := strings.Count(log.String(), `msg="audit head"`); n != node.MaxHeads || !strings.Contains(log.String(), "chains=3") {
		t.Errorf("%d heads:\n%s", n, log.String())
	}
	log.Reset()
	if last = node.LogHeads(r, logger, last); log.Len() > 0 {
		t.Errorf("nothing has changed:\n%s", log.String())
	}
	apply(strings.Repeat("a", 11), "Changed")
	if node.LogHeads(r, logger, last); strings.Count(log.String(), "\n") != 1 {
		t.Errorf("one chain has grown:\n%s", log.String())
	}
	_, hash, _ := strings.Cut(strings.TrimSpace(log.String()), "hash=")
	apply(strings.Repeat("a", 11), "Again")
	node.NoteConfirm(r, configsrc.Held{Reason: "all"})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if c := invoke(t, "audit", "verify", "--data", dir, "--head", hash); c.code != cli.ExitOK || !strings.Contains(c.out, "entries: 106, chains: 103") {
		t.Errorf("%+v", c)
	}
}
