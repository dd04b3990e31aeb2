package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

var queryAll = catalog.MailQuery{Page: 1, Limit: 1}

// addLogs stores n entries, a second apart, and returns their ids, the oldest first.
func (p *post) addLogs(project int64, n int) (ids []int64) {
	p.t.Helper()
	at := time.Date(2026, 1, 31, 9, 30, 0, 123456000, time.UTC)
	for i := range n {
		l := catalog.MailLog{ID: p.resolver.NewMailID(), ProjectID: project, ProviderType: catalog.ProviderSMTP, ToEmail: fmt.Sprintf("user%d@example.com", i%3),
			Subject: fmt.Sprintf("No. %d", i), Status: catalog.MailSending, MessageID: fmt.Sprintf("<%d@post.example>", i), ServiceName: "shop",
			Attempts: 1 + i%4, CreatedAt: at.Add(time.Duration(i) * time.Second)}
		if i%2 == 0 {
			l.TemplateCode = "HELLO"
		}
		if _, err := p.resolver.AcceptMail(&l, &catalog.QueuedMail{LogID: l.ID, ProjectID: project, From: "a@b.example", To: l.ToEmail, ExpiresAt: at, Message: []byte("x")}, nil); err != nil {
			p.t.Fatal(err)
		}
		l.Status, l.SentAt = catalog.MailSent, l.CreatedAt.Add(time.Second)
		if i%5 == 0 {
			l.Status, l.SentAt, l.ErrorCode, l.ErrorMessage, l.SMTPCode = catalog.MailFailed, time.Time{}, "SMTP_RECIPIENT_REJECTED", "no", 550
		}
		if err := p.resolver.UpdateMail(&l); err != nil {
			p.t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	return ids
}

// Logs come latest first, a page at a time, filtered and sorted as asked.
func TestMailLogs(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	ids := p.addLogs(postID, 30)
	p.addLogs(muteID, 3) // nobody sees another project's
	list := func(query string) (got []int64, meta map[string]any) {
		t.Helper()
		a := p.ask("GET", fmt.Sprintf("/projects/%d/logs%s", postID, query), p.poster, "")
		a.check(t, 200, "")
		for _, row := range a.json["data"].([]any) {
			e := row.(map[string]any)
			got = append(got, int64(e["id"].(float64)))
			if e["projectId"] != float64(postID) {
				t.Errorf("%s: %v", query, e)
			}
		}
		return got, a.json["meta"].(map[string]any)
	}
	latest := slices.Clone(ids)
	slices.Reverse(latest)
	where := func(from []int64, keep func(i int) bool) (some []int64) {
		for _, id := range from {
			if keep(slices.Index(ids, id)) {
				some = append(some, id)
			}
		}
		return some
	}
	const start = "2026-01-31T09:30:"
	for _, c := range []struct {
		query string
		want  []int64
		total int
	}{
		{"", latest[:10], 30},
		{"?page=3", latest[20:], 30},
		{"?page=4", nil, 30},
		{"?limit=100", latest, 30},
		{"?sort=createdAt&limit=2", latest[:2], 30},
		{"?order=asc&limit=2", ids[:2], 30},
		{"?sort=id&limit=2", ids[:2], 30},
		{"?sort=id&order=desc&limit=2", latest[:2], 30},
		{"?status=FAILED&limit=100", where(latest, func(i int) bool { return i%5 == 0 }), 6},
		{"?status=PENDING", nil, 0},
		{"?templateCode=HELLO&limit=3&page=2", where(latest, func(i int) bool { return i%2 == 0 })[3:6], 15},
		{"?toEmail=user1@example.com&status=SENT&limit=100", where(latest, func(i int) bool { return i%3 == 1 && i%5 != 0 }), 8},
		{"?from=" + start + "10&to=" + start + "12.123456&limit=100", latest[30-12 : 30-10], 2},
		{"?from=" + url.QueryEscape(start+"28.123456Z"), latest[:2], 2},
		{"?to=2020-01-01T00:00:00", nil, 0},
		{"?sort=attempts&order=desc&limit=1", where(latest, func(i int) bool { return i%4 == 3 })[:1], 30},
	} {
		got, meta := list(c.query)
		if !slices.Equal(got, c.want) || meta["total"] != float64(c.total) {
			t.Errorf("%q: %v of %v, want %v of %d", c.query, got, meta["total"], c.want, c.total)
		}
	}
}

func TestMailLogsRefused(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	for _, c := range []struct {
		path, key string
		status    int
		code      string
		fields    []string
	}{
		{"/projects/41/logs?page=0&limit=101&sort=body&order=up&status=LOST&templateCode=&toEmail=&from=yesterday&to=2026-13-01T00:00:00", p.poster, 400, "VALIDATION_ERROR",
			[]string{"status", "templateCode", "toEmail", "from", "to", "page", "limit", "sort", "order"}},
		{"/projects/x/logs?page=x", p.poster, 400, "VALIDATION_ERROR", []string{"projectId", "page"}},
		{"/projects/41/logs?status=SENT&status=SENT&from=%zz", p.poster, 400, "VALIDATION_ERROR", []string{"status", "from"}},
		{"/projects/41/logs/0", p.poster, 400, "VALIDATION_ERROR", []string{"logId"}},
		{"/projects/0x1/logs/-1", p.poster, 400, "VALIDATION_ERROR", []string{"projectId", "logId"}},
		{"/projects/41/logs", p.other, 403, "FORBIDDEN", nil}, // mail, not read
		{"/projects/42/logs", p.poster, 403, "FORBIDDEN", nil},
		{"/projects/42/logs/1", p.poster, 403, "FORBIDDEN", nil},
		{"/projects/999/logs", p.reader, 404, "NOT_FOUND", nil},
		{"/projects/999/logs", p.poster, 404, "NOT_FOUND", nil},
		{"/projects/41/logs/999", p.poster, 404, "NOT_FOUND", nil},
	} {
		a := p.ask("GET", c.path, c.key, "")
		a.check(t, c.status, c.code)
		if c.fields != nil && !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%s: fields %q, want %q", c.path, a.fields(), c.fields)
		}
	}
}

// One entry has an ETag, which moves with it, and belongs to its project.
func TestMailLog(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	id := p.addLogs(postID, 1)[0]
	path := fmt.Sprintf("/projects/%d/logs/%d", postID, id)
	a := p.ask("GET", path, p.reader, "")
	a.check(t, 200, "")
	want := fmt.Sprintf(`{"id":%d,"projectId":41,"providerType":"SMTP","toEmail":"user0@example.com","subject":"No. 0","templateCode":"HELLO","status":"FAILED",`+
		`"errorMessage":"no","createdAt":"2026-01-31T09:30:00.123456","sentAt":null,"attempts":1,"nextAttemptAt":null,"errorCode":"SMTP_RECIPIENT_REJECTED",`+
		`"smtpCode":550,"messageId":"<0@post.example>","uncertain":false,"serviceName":"shop","waitingFor":null,"againOf":null,"locale":null,"history":[]}`, id)
	if !strings.Contains(string(a.body), `"data":`+want+`,"timestamp"`) {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	tag := a.Header.Get("ETag")
	if again := p.ask("GET", path, p.reader, "", "If-None-Match: "+tag); again.StatusCode != 304 {
		t.Errorf("%d with the ETag", again.StatusCode)
	}
	entry, _, err := p.resolver.MailLog(postID, id)
	if err != nil {
		t.Fatal(err)
	}
	entry.Attempts++
	if err := p.resolver.UpdateMail(&entry); err != nil {
		t.Fatal(err)
	}
	if again := p.ask("GET", path, p.reader, "", "If-None-Match: "+tag); again.StatusCode != 200 || again.Header.Get("ETag") == tag {
		t.Errorf("%d %s after a change", again.StatusCode, again.Header.Get("ETag"))
	}
	p.ask("GET", fmt.Sprintf("/projects/%d/logs/%d", muteID, id), p.reader, "").check(t, 404, "NOT_FOUND")
}

// The log outlives its project, for keys that reach every project.
func TestMailLogsOfDeletedProject(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	id := p.addLogs(postID, 2)[0]
	p.apply("mail.hcl", &catalog.Declared{Keys: p.mailFixture().Keys[:0]})
	list := fmt.Sprintf("/projects/%d/logs", postID)
	a := p.ask("GET", list, p.all, "")
	a.check(t, 200, "")
	if rows := a.json["data"].([]any); len(rows) != 2 {
		t.Errorf("%s", a.body)
	}
	p.ask("GET", fmt.Sprintf("%s/%d", list, id), p.all, "").check(t, 200, "")
	p.ask("GET", fmt.Sprintf("/projects/%d/logs", muteID), p.all, "").check(t, 404, "NOT_FOUND")
	p.ask("GET", list, p.acme, "").check(t, 404, "NOT_FOUND")
}
