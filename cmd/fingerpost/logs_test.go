package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// A fakeLog is the mail log of another server with the same API.
type fakeLog struct {
	mu     sync.Mutex // guards what follows
	rows   []object
	broken int // so many requests are answered 500
	asked  int
	across bool // it finds mail over all projects
}

func (l *fakeLog) put(id int64, createdAt, status string, attempts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := object{"id": id, "projectId": 101, "providerType": "SMTP", "toEmail": fmt.Sprintf("user%d@example.com", id), "subject": "Hi\x1b[31m", "templateCode": nil,
		"status": status, "errorMessage": nil, "createdAt": "2026-01-31T" + createdAt, "sentAt": nil, "attempts": attempts, "nextAttemptAt": nil, "errorCode": nil,
		"smtpCode": nil, "messageId": "<m@example.com>", "uncertain": false, "serviceName": "s", "locale": nil}
	l.rows = slices.DeleteFunc(l.rows, func(r object) bool { return r["id"] == id })
	l.rows = append(l.rows, row)
	slices.SortFunc(l.rows, func(a, b object) int {
		return cmp.Or(strings.Compare(a["createdAt"].(string), b["createdAt"].(string)), cmp.Compare(a["id"].(int64), b["id"].(int64)))
	})
}

func (l *fakeLog) fail(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = n
}

// serve answers the calls of the mail log, and no others.
func (l *fakeLog) serve(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/mail/projects/101/logs")
	if l.across && r.URL.Path == "/api/mail/logs" {
		rest, ok = "", true
	}
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.broken > 0 {
		l.broken--
		refuse(w, 500, "INTERNAL_ERROR", "broken")
		return true
	}
	if id, one := strings.CutPrefix(rest, "/"); one {
		for _, row := range l.rows {
			if fmt.Sprint(row["id"]) == id {
				succeed(w, 200, row)
				return true
			}
		}
		refuse(w, 404, "NOT_FOUND", "no such entry")
		return true
	}
	q := r.URL.Query()
	rows := slices.Clone(l.rows)
	rows = slices.DeleteFunc(rows, func(row object) bool {
		return q.Get("status") != "" && row["status"] != q.Get("status") || row["createdAt"].(string) < q.Get("from")
	})
	if q.Get("order") != "asc" {
		slices.Reverse(rows)
	}
	page, _ := strconv.Atoi(q.Get("page"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	total := len(rows)
	rows = rows[min((page-1)*limit, total):min(page*limit, total)]
	_ = json.NewEncoder(w).Encode(object{"success": true, "message": "ok", "data": rows,
		"meta": object{"total": total, "page": page, "limit": limit, "totalPages": (total + limit - 1) / limit}})
	return true
}

// newFakeLog is a foreign server with one project, "acme", whose id is 101, and its log.
func newFakeLog(t *testing.T) (*foreign, *fakeLog) {
	f, l := newForeign(t), &fakeLog{}
	f.mangle = l.serve
	if id := f.add(object{"name": "Acme", "slug": "acme"}); id != 101 {
		t.Fatalf("the project has the id %d", id)
	}
	return f, l
}

// Without --project the mail of all projects takes one question, however many projects there are.
func TestLogsAcross(t *testing.T) {
	f, l := newFakeLog(t)
	f.add(object{"name": "Beta", "slug": "beta"})
	l.across = true
	for id := range int64(150) {
		l.put(id+1, fmt.Sprintf("09:%02d:%02d.000000", id/60, id%60), "SENT", 1)
	}
	l.rows[149]["projectId"] = 987 // of a deleted project
	c := f.with(t, t.TempDir(), "logs")
	lines := strings.Split(strings.TrimSuffix(c.out, "\n"), "\n")
	if c.code != cli.ExitOK || l.asked != 1 || len(lines) != 50 || !strings.Contains(lines[48], "  acme  to user149@") ||
		!strings.Contains(lines[49], "  987  to user150@") {
		t.Errorf("%d questions, %d: %s%s", l.asked, c.code, c.out, c.err)
	}
}

// The line of a mail names its template, and the language of it that was taken.
func TestLogsLanguage(t *testing.T) {
	f, l := newFakeLog(t)
	for id, of := range [][]any{{nil, nil}, {"WELCOME", nil}, {"WELCOME", "de-AT"}} {
		l.put(int64(id+1), fmt.Sprintf("09:00:0%d.000000", id), "SENT", 1)
		l.rows[id]["templateCode"], l.rows[id]["locale"] = of[0], of[1]
	}
	c := f.with(t, t.TempDir(), "logs", "--project", "acme")
	for _, want := range []string{"  to user1@example.com  \"", "  to user2@example.com  WELCOME  \"", "  to user3@example.com  WELCOME (de-AT)  \""} {
		if !strings.Contains(c.out, want) {
			t.Errorf("it lacks %q: %s%s", want, c.out, c.err)
		}
	}
	c = f.with(t, t.TempDir(), "logs", "--project", "acme", "--json", "--limit", "2")
	var all []map[string]any
	if err := json.Unmarshal([]byte(c.out), &all); err != nil || len(all) != 2 || all[0]["locale"] != nil || all[1]["locale"] != "de-AT" {
		t.Fatalf("%v: %s", err, c.out)
	}
	if _, there := all[0]["locale"]; !there {
		t.Errorf("null is left out: %s", c.out)
	}
}

func TestLogs(t *testing.T) {
	testrig.Slow(t)
	f, l := newFakeLog(t)
	for id := range int64(250) {
		l.put(id+1, fmt.Sprintf("09:%02d:%02d.000000", id/60, id%60), []string{"SENT", "FAILED"}[id%2], 1)
	}
	check := func(code int, want string, args ...string) call {
		t.Helper()
		c := f.with(t, t.TempDir(), append([]string{"logs"}, args...)...)
		if c.code != code || !strings.Contains(c.out+c.err, want) {
			t.Errorf("%v: %+v, want %d with %q", args, c, code, want)
		}
		return c
	}
	c := check(cli.ExitOK, "user250@example.com", "--project", "acme")
	lines := strings.Split(strings.TrimSuffix(c.out, "\n"), "\n")
	if len(lines) != 50 || !strings.Contains(lines[0], "#201") || !strings.Contains(lines[49], `#250`) || strings.Contains(c.out, "\x1b") {
		t.Errorf("%d lines: %s", len(lines), c.out)
	}
	if c := check(cli.ExitOK, "#1", "--limit", "1000"); strings.Count(c.out, "\n") != 250 {
		t.Errorf("%d lines", strings.Count(c.out, "\n"))
	}
	if c := check(cli.ExitOK, "", "--status", "FAILED", "--limit", "120"); strings.Count(c.out, "FAILED") != 120 || strings.Contains(c.out, "SENT") {
		t.Errorf("%s", c.out)
	}
	c = check(cli.ExitOK, "", "--json", "--limit", "3")
	var all []client.LoggedMail
	if err := json.Unmarshal([]byte(c.out), &all); err != nil || len(all) != 3 || all[2].ID != 250 || all[2].Project != "acme" || all[2].MessageID != "<m@example.com>" {
		t.Errorf("%v: %s", err, c.out)
	}
	if c := check(cli.ExitOK, "[]", "--json", "--status", "EXPIRED"); strings.TrimSpace(c.out) != "[]" {
		t.Errorf("%q", c.out)
	}
	check(cli.ExitNot, `no such project: "none", "nil"`, "--project", "none,acme,nil")
	check(cli.ExitOK, "#250", "--project", "101") // a deleted project still has its log, by id
	check(cli.ExitNot, `project "102" has no mail log`, "--project", "102")
	check(cli.ExitUsage, "--status must be one of", "--status", "sent")
	check(cli.ExitUsage, "--every must be at least 10ms", "--since", "yesterday", "--every", "1ms", "--limit", "-1")
	check(cli.ExitUsage, "unknown command", "all")
	l.fail(1)
	check(cli.ExitFailed, "the server answers 500 INTERNAL_ERROR: broken", "--project", "acme")
	f.Close()
	check(cli.ExitFailed, "connection refused")
	t.Setenv("FINGERPOST_KEY", "")
	for _, none := range []string{"", ",", "acme,"} { // as an unset variable makes it
		if c := invoke(t, "logs", "--url", f.URL, "--key", "k", "--project", none); c.code != cli.ExitUsage || !strings.Contains(c.err, "--project must name a project") {
			t.Errorf("--project %q: %+v", none, c)
		}
	}
	if c := invoke(t, "logs", "--url", f.URL); c.code != cli.ExitUsage || !strings.Contains(c.err, "FINGERPOST_KEY") {
		t.Errorf("%+v", c)
	}
}

// An output is what a running command has printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Each mail and each change of one is printed once, in order, through failures of the server, and no old entries.
func TestLogsFollow(t *testing.T) {
	f, l := newFakeLog(t)
	l.put(1, "09:00:00.000000", "SENT", 1) // not among the newest two
	l.put(2, "09:30:00.000000", "RETRYING", 1)
	l.put(3, "09:30:01.000000", "SENT", 1)
	t.Setenv("FINGERPOST_KEY", foreignKey)
	ctx, stop := context.WithCancel(t.Context())
	var out, errs output
	ended := make(chan int, 1)
	go func() {
		ended <- runContext(ctx, []string{"logs", "--url", f.URL, "--limit", "2", "--follow", "--every", "10ms", "--json"},
			cli.Terminal{Out: &out, Err: &errs})
	}()
	var want []string
	expect := func(id int64, status string, attempts int) {
		t.Helper()
		want = append(want, fmt.Sprintf("%d %s %d", id, status, attempts))
		err := poll(testrig.Patience, func() error {
			var got []string
			for line := range strings.Lines(out.String()) {
				var e client.LoggedMail
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					return fmt.Errorf("%w in %s", err, line)
				}
				got = append(got, fmt.Sprintf("%d %s %d", e.ID, e.Status, e.Attempts))
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("it prints %q, want %q; %s", got, want, errs.String())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want = []string{"2 RETRYING 1"}
	expect(3, "SENT", 1)
	l.put(4, "09:30:02.000000", "PENDING", 0)
	expect(4, "PENDING", 0)
	l.put(4, "09:30:02.000000", "SENT", 1)
	expect(4, "SENT", 1)
	l.put(5, "09:30:01.500000", "SENT", 1) // stored after a later one
	expect(5, "SENT", 1)
	l.put(6, "09:45:00.000000", "SENT", 1) // from here on 2 is behind the window
	expect(6, "SENT", 1)
	l.fail(4)
	if err := poll(testrig.Patience, func() error {
		if n := strings.Count(errs.String(), "broken; asking on"); n != 1 {
			return fmt.Errorf("%d complaints: %s", n, errs.String())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.put(2, "09:30:00.000000", "RETRYING", 2)
	expect(2, "RETRYING", 2)
	l.put(2, "09:30:00.000000", "EXPIRED", 2)
	expect(2, "EXPIRED", 2)
	for id := int64(7); id < 300; id++ { // more than a page at once
		l.put(id, fmt.Sprintf("09:46:00.%06d", id), "SENT", 1)
		want = append(want, fmt.Sprintf("%d SENT 1", id))
	}
	l.put(300, "09:47:00.000000", "SENT", 1)
	expect(300, "SENT", 1)
	stop()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("it ended with %d: %s", code, errs.String())
	}
}
