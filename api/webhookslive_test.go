package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/platform/webhooks"
	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver"
	"fingerpost/resolver/rowjson"
)

var eventSecret = []byte("a secret of 24 or more bytes")

// declaredHooks are the webhooks of the files, all with the same secret.
type declaredHooks struct{ live *resolver.Resolver }

func (d declaredHooks) Webhooks() (hooks []webhook.Hook, changed <-chan struct{}, known bool) {
	changed = d.live.Events().Changed()
	for _, w := range d.live.Webhooks() {
		hooks = append(hooks, webhook.Hook{Name: w.Name, URL: w.URL, Secrets: [][]byte{eventSecret}, Wants: w.Wants,
			Covers: func(_ int64, slug string) bool { return slices.Contains(w.Projects, slug) }, EveryProject: w.Projects == nil, Active: w.Active, Version: rowjson.WebhookETag(&w)})
	}
	return hooks, changed, true
}

// An eventDesk is a desk with a receiver, and an engine that delivers to it.
type eventDesk struct {
	*desk
	url    string
	live   *webhook.Engine
	end    func() // ends the engine
	mu     sync.Mutex
	got    []string                    // ids of events
	answer func(w http.ResponseWriter) // nil: 204
}

func newEventDesk(t *testing.T) *eventDesk {
	t.Helper()
	e := &eventDesk{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		e.mu.Lock()
		e.got = append(e.got, r.Header.Get("webhook-id"))
		answer := e.answer
		e.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w)
	}))
	t.Cleanup(func() {
		receiver.CloseClientConnections()
		receiver.Close()
	})
	e.url = receiver.URL + "/hidden"
	files := map[string]string{}
	for name, content := range webhookDesk {
		files[name] = content
	}
	e.desk = &desk{dir: t.TempDir(), engine: func(live *resolver.Resolver) webhooks.Engine {
		engine := webhook.New(webhook.Options{Hooks: declaredHooks{live}, Ledger: live.Records, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			engine.Run(ctx)
		}()
		e.end = func() {
			cancel()
			<-ended
		}
		t.Cleanup(e.end)
		e.live = engine
		return engine
	}}
	e.open(t, files)
	return e
}

func (e *eventDesk) set(answer func(w http.ResponseWriter)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func answers(status int, text string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func (e *eventDesk) ids() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

// hook creates a webhook; more are further fields.
func (e *eventDesk) hook(t *testing.T, name, more string) {
	t.Helper()
	e.askBody("POST", webhooksPath, e.key, `{"name": "`+name+`", "url": "`+e.url+`"`+more+`}`).check(t, 201, "")
}

// change changes the project acme.
func (e *eventDesk) change(t *testing.T, name string) {
	t.Helper()
	e.askBody("PUT", "/api/platform/projects/"+itoa(int(e.projectID(t, "acme"))), e.key, `{"name": "`+name+`"}`).check(t, 200, "")
}

// deliveries lists those of a webhook that a query selects.
func (e *eventDesk) deliveries(t *testing.T, name, query string) (rows []map[string]any) {
	t.Helper()
	a := e.ask("GET", webhooksPath+"/"+name+"/deliveries"+query, e.key)
	a.check(t, 200, "")
	list, _ := a.json["data"].([]any)
	for _, row := range list {
		r, _ := row.(map[string]any)
		rows = append(rows, r)
	}
	if strings.Contains(string(a.body), "/hidden") || strings.Contains(string(a.body), "whsec_") {
		t.Errorf("an address or a secret in %s", a.body)
	}
	return rows
}

// states waits until the deliveries of a webhook, the oldest first, have these states.
func (e *eventDesk) states(t *testing.T, name string, want ...string) (rows []map[string]any) {
	t.Helper()
	testrig.Eventually(t, name+" has deliveries "+strings.Join(want, " "), func() bool {
		var got []string
		rows = e.deliveries(t, name, "?order=asc&limit=100")
		for _, r := range rows {
			got = append(got, r["state"].(string))
		}
		return slices.Equal(got, want)
	})
	return rows
}

// idle waits until a webhook has nothing to deliver. A replay is at work until then, also after the receiver has answered
// its last event.
func (e *eventDesk) idle(t *testing.T, name string) {
	t.Helper()
	testrig.Eventually(t, name+" has nothing to deliver", func() bool {
		list, _ := e.ask("GET", webhooksPath, e.key).json["data"].([]any)
		return slices.ContainsFunc(list, func(row any) bool {
			h, _ := row.(map[string]any)
			delivery, _ := h["delivery"].(map[string]any)
			return h["name"] == name && delivery["waiting"] == 0.0
		})
	})
}

// act makes a live call.
func (e *eventDesk) act(name, call, body string, headers ...string) *answer {
	return e.askBody("POST", webhooksPath+"/"+name+"/"+call, e.key, body, headers...)
}

// TestWebhookDeliveries: what a change brings to a receiver can be read, filtered and sent again.
func TestWebhookDeliveries(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["project.*"]`)
	e.change(t, "Two")
	row := e.states(t, "crm", "delivered")[0]
	attempt := row["attempts"].([]any)[0].(map[string]any)
	if row["event"] != "project.update" || row["object"] != "acme" || row["entry"] == nil || row["nextAttemptAt"] != nil ||
		row["projectId"] != float64(e.projectID(t, "acme")) || attempt["status"] != 204.0 || attempt["answer"] != "" || attempt["error"] != nil {
		t.Errorf("%v", row)
	}
	if id := row["id"].(string); !slices.Equal(e.ids(), []string{id}) {
		t.Errorf("the receiver got %q, the list has %s", e.ids(), id)
	}
	e.set(answers(500, "oops"))
	e.change(t, "Three")
	second := e.states(t, "crm", "delivered", "failing")[1]
	attempt = second["attempts"].([]any)[0].(map[string]any)
	if attempt["status"] != 500.0 || attempt["answer"] != "oops" || attempt["error"] != "the receiver answered 500" || second["nextAttemptAt"] == nil {
		t.Errorf("%v", second)
	}
	made := second["createdAt"].(string)
	for query, want := range map[string]int{"": 2, "?state=failing": 1, "?state=dead": 0, "?event=project.update": 2, "?event=project.create": 0,
		"?event=gap": 0, "?from=" + made: 1, "?to=" + made: 1, "?from=2020-01-01T00:00:00&to=2021-01-01T00:00:00Z": 0, "?page=2&limit=1": 1, "?page=3&limit=1": 0,
		"?state=delivered&event=project.update&sort=createdAt&order=desc": 1} {
		if got := e.deliveries(t, "crm", query); len(got) != want {
			t.Errorf("%s: %d deliveries, want %d", query, len(got), want)
		}
	}
	if got := e.deliveries(t, "crm", ""); got[0]["id"] != second["id"] {
		t.Errorf("the first one is %v", got[0])
	}

	// One delivery again, then all.
	e.set(nil)
	one := e.act("crm", "replay", `{"id": "`+row["id"].(string)+`"}`, "X-Actor: Ada <ada@acme.example>")
	one.check(t, 202, "")
	rows := e.states(t, "crm", "delivered", "delivered", "delivered")
	e.idle(t, "crm")
	again := rows[2]["id"].(string)
	if one.data()["count"] != 1.0 || again != row["id"].(string)+".r3" || !slices.Contains(e.ids(), again) || rows[2]["entry"] != row["entry"] {
		t.Errorf("%s: %v", one.body, rows)
	}
	all := e.act("crm", "replay", `{"from": "2020-01-01T00:00:00", "to": "2999-01-01T00:00:00Z"}`)
	all.check(t, 202, "")
	count := int(all.data()["count"].(float64))
	testrig.Eventually(t, "all is sent again", func() bool { return len(e.ids()) >= 4+count }) // one was tried twice
	e.idle(t, "crm")
	none := e.act("crm", "replay", `{"from": "2020-01-01T00:00:00", "to": "2020-01-02T00:00:00"}`)
	none.check(t, 202, "")
	if count < 2 || none.data()["count"] != 0.0 {
		t.Errorf("%s %s", all.body, none.body)
	}
	trail := e.ask("GET", "/api/platform/audit?order=asc&action=webhook.replay", e.key)
	for _, want := range []string{`"object":"crm"`, `"field":"delivery","before":null,"after":"` + row["id"].(string), `"field":"from","before":null,"after":"2020-01-01T00:00:00.000000"`,
		`"field":"count","before":null,"after":1`, "Ada <ada@acme.example>"} {
		if !strings.Contains(string(trail.body), want) {
			t.Errorf("the trail has no %s: %s", want, trail.body)
		}
	}
	if n := strings.Count(string(trail.body), `"action":"webhook.replay"`); n != 2 {
		t.Errorf("%d entries of replays: %s", n, trail.body)
	}
}

// TestWebhookTest: a test is answered as it went, is sent to inactive webhooks, too, and leaves nothing behind.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["template.*"], "active": false`)
	e.askBody("POST", webhooksPath, e.key, `{"name": "away", "url": "http://127.0.0.1:1/hidden"}`).check(t, 201, "")
	e.askBody("POST", webhooksPath, e.key, `{"name": "inside", "url": "https://10.1.2.3/hidden", "active": false}`).check(t, 201, "")
	f := func(name string, delivered bool, status any, answer any, failure string) {
		t.Helper()
		a := e.act(name, "test", "")
		a.check(t, 200, "")
		got := a.data()
		text, _ := got["error"].(string)
		if got["delivered"] != delivered || got["status"] != status || got["answer"] != answer || !strings.Contains(text, failure) || (text == "") != delivered ||
			strings.Contains(string(a.body), "hidden") {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	f("crm", true, 204.0, "", "")
	e.set(answers(200, "thank <you>"))
	f("crm", true, 200.0, "thank <you>", "")
	e.set(answers(302, "elsewhere"))
	f("crm", false, 302.0, "elsewhere", "answered 302")
	e.set(answers(410, "gone"))
	f("crm", false, 410.0, "gone", "answered 410")
	f("away", false, nil, nil, "refused")
	f("inside", false, nil, nil, "cannot be asked")
	if got := e.ids(); len(got) != 4 || !strings.HasSuffix(got[0], ".crm") || !strings.Contains(got[0], ".t") {
		t.Errorf("the receiver got %q", got)
	}
	if rows := e.deliveries(t, "crm", ""); len(rows) != 0 {
		t.Errorf("tests are kept: %v", rows)
	}
	e.askBody("PUT", webhooksPath+"/crm", e.key, `{"active": true}`).check(t, 200, "")
	e.act("crm", "resume", "").check(t, 200, "") // the 410 was not a delivery: it is on
	e.act("crm", "replay", `{"id": "`+e.ids()[0]+`"}`).check(t, 404, "NOT_FOUND")
}

// TestWebhookResume: a webhook that its receiver has switched off goes on with what was refused.
func TestWebhookResume(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["project.*"]`)
	e.hook(t, "resting", `, "active": false`)
	e.set(answers(410, ""))
	e.change(t, "Two")
	e.states(t, "crm", "failing")
	e.act("crm", "replay", `{"from": "2020-01-01T00:00:00"}`).check(t, 409, "CONFLICT")
	e.set(nil)
	for range 2 { // the second one finds it on
		a := e.act("crm", "resume", "")
		a.check(t, 200, "")
		if a.data()["name"] != "crm" {
			t.Errorf("%s", a.body)
		}
		e.states(t, "crm", "delivered")
	}
	for _, call := range []string{"resume", "replay"} {
		a := e.act("resting", call, `{"from": "2020-01-01T00:00:00"}`)
		if a.check(t, 409, "CONFLICT"); !strings.Contains(string(a.body), "set active to true") {
			t.Errorf("%s", a.body)
		}
	}
}

// TestWebhookStanding: a list says how webhooks do. Answers with an ETag do not, nor do proposals and servers that deliver
// nothing.
func TestWebhookStanding(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["project.*"]`)
	e.hook(t, "resting", `, "active": false`)
	of := func(query string) (all []map[string]any) {
		t.Helper()
		a := e.ask("GET", webhooksPath+query, e.key)
		a.check(t, 200, "")
		for _, row := range a.json["data"].([]any) {
			d, _ := row.(map[string]any)["delivery"].(map[string]any)
			all = append(all, d)
		}
		return all
	}
	is := func(of map[string]any, state string, waiting, failing float64) {
		t.Helper()
		if of["state"] != state || of["waiting"] != waiting || of["failing"] != failing || (of["offReason"] != nil) != (state == "off") || (of["offSince"] != nil) != (state == "off") ||
			(of["oldest"] != nil) != (waiting > 0) {
			t.Errorf("%v, want %s, %v waiting, %v failing", of, state, waiting, failing)
		}
	}
	one := func() *answer { return e.ask("GET", webhooksPath+"/crm", e.key) }
	is(of("")[0], "on", 0, 0)
	is(of("")[1], "inactive", 0, 0)
	tag := one().Header.Get("ETag")
	e.set(answers(500, ""))
	e.change(t, "Two")
	e.states(t, "crm", "failing")
	all := of("?sort=name&order=desc&page=1")
	is(all[0], "inactive", 0, 0)
	is(all[1], "on", 1, 1)
	if last := all[1]["last"].(map[string]any); all[0]["last"] != nil || last["event"] != "project.update" || last["object"] != "acme" || last["state"] != "failing" {
		t.Errorf("%v", all)
	}
	e.set(answers(410, ""))
	e.act("crm", "replay", `{"from": "2020-01-01T00:00:00"}`).check(t, 202, "")
	testrig.Eventually(t, "it is off", func() bool { return of("")[0]["state"] == "off" })
	is(of("")[0], "off", 2, 2)
	if one().Header.Get("ETag") != tag || strings.Contains(string(one().body), "delivery") {
		t.Errorf("%s", one().body)
	}
	e.ask("GET", webhooksPath+"/crm", e.key, "If-None-Match: "+tag).check(t, 304, "")
	e.set(answers(500, ""))
	resumed := e.act("crm", "resume", "")
	is(resumed.data()["delivery"].(map[string]any), "on", 2, 2)
	row, _ := json.Marshal(resumed.data()) // may be sent back
	put := e.askBody("PUT", webhooksPath+"/crm", e.key, string(row), "Prefer: handling=strict", "If-Match: "+tag)
	if put.check(t, 200, ""); put.Header.Get("ETag") != tag || put.data()["delivery"] != nil {
		t.Errorf("%v %s", put.Header, put.body)
	}
	e.end()
	if all := of(""); all[0] != nil || all[1] != nil { // the list is there without
		t.Errorf("%v", all)
	}
}

// TestWebhookReplayAtWork: a webhook has one replay at a time; what happens meanwhile is delivered next to it.
func TestWebhookReplayAtWork(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["project.*"]`)
	e.change(t, "Two")
	id := e.states(t, "crm", "delivered")[0]["id"].(string)
	hangs, release := make(chan struct{}), make(chan struct{})
	e.set(func(http.ResponseWriter) {
		e.set(nil) // the next ones pass
		close(hangs)
		<-release
	})
	e.act("crm", "replay", `{"id": "`+id+`"}`).check(t, 202, "")
	<-hangs
	e.act("crm", "replay", `{"id": "`+id+`"}`).check(t, 409, "CONFLICT")
	e.act("crm", "replay", `{"from": "2020-01-01T00:00:00"}`).check(t, 409, "CONFLICT")
	e.change(t, "Three")
	e.states(t, "crm", "delivered", "pending", "delivered")
	close(release)
	e.states(t, "crm", "delivered", "delivered", "delivered")
	testrig.Eventually(t, "another replay is taken", func() bool { return e.act("crm", "replay", `{"id": "`+id+`"}`).StatusCode == 202 })
	trail := e.ask("GET", "/api/platform/audit?action=webhook.replay", e.key)
	if n := strings.Count(string(trail.body), `"action":"webhook.replay"`); n != 2 {
		t.Errorf("%d entries of replays, want those of the two that were taken", n)
	}
}

// TestWebhookDeletedMeanwhile: a test ends as it does, whatever becomes of its webhook and of the engine.
func TestWebhookDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", "")
	hangs, release := make(chan struct{}), make(chan struct{})
	e.set(func(w http.ResponseWriter) {
		e.set(nil)
		close(hangs)
		<-release
	})
	tested := make(chan *answer, 1)
	go func() { tested <- e.act("crm", "test", "") }()
	<-hangs
	e.ask("DELETE", webhooksPath+"/crm", e.key).check(t, 200, "")
	for _, call := range []string{"GET deliveries", "POST test", "POST resume", "POST replay"} {
		method, path, _ := strings.Cut(call, " ")
		e.askBody(method, webhooksPath+"/crm/"+path, e.key, `{"id": "x"}`).check(t, 404, "NOT_FOUND")
	}
	close(release)
	a := <-tested
	if a.check(t, 200, ""); a.data()["delivered"] != true {
		t.Errorf("%s", a.body)
	}
	e.hook(t, "new", "")
	e.end()
	for _, call := range []string{"test", "resume", "replay"} {
		e.act("new", call, `{"from": "2020-01-01T00:00:00"}`).check(t, 503, "UNAVAILABLE")
	}
	e.deliveries(t, "new", "") // can be read all the same
	if trail := e.ask("GET", "/api/platform/audit?action=webhook.replay", e.key); strings.Contains(string(trail.body), `"action":"webhook.replay"`) {
		t.Errorf("the trail tells of a replay: %s", trail.body)
	}
}

// TestWebhookCallsBadInput: all problems at once, and nothing is sent.
func TestWebhookCallsBadInput(t *testing.T) {
	t.Parallel()
	e := newEventDesk(t)
	e.hook(t, "crm", "")
	f := func(body string, want ...string) {
		t.Helper()
		a := e.act("crm", "replay", body)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := a.fields(); !slices.Equal(got, want) {
			t.Errorf("%.80s: details for %q, want %q: %s", body, got, want, a.body)
		}
	}
	soon := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05")
	f("", "body")
	f(`[]`, "body")
	f(`{}`, "body")
	f(`{"count": 1}`, "body")
	f(`{"id": "x", "from": "2020-01-01T00:00:00"}`, "id")
	f(`{"id": ""}`, "id")
	f(`{"id": null}`, "id")
	f(`{"id": 1}`, "id")
	f(`{"to": "2020-01-01T00:00:00"}`, "from")
	f(`{"from": null, "to": 7}`, "from", "to")
	f(`{"from": "yesterday", "to": "2020-01-01"}`, "from", "to")
	f(`{"from": "0001-01-01T00:00:00"}`, "from")
	f(`{"from": "2020-01-02T00:00:00", "to": "2020-01-01T00:00:00"}`, "to")
	f(`{"from": "2020-01-01T00:00:00", "to": "2020-01-01T00:00:00"}`, "to")
	f(`{"from": "`+soon+`"}`, "from")
	f(`{"from": "`+soon+`", "to": "2020-01-01T00:00:00"}`, "from", "to")
	e.act("crm", "replay", `{"id": "`+strings.Repeat("x", 1<<20-20)+`"}`).check(t, 404, "NOT_FOUND")
	e.act("crm", "replay", `{"id": "`+strings.Repeat("x", 1<<20)+`"}`).check(t, 413, "PAYLOAD_TOO_LARGE")
	e.act("crm", "replay", `{"id": "x", "form": 1}`, "Prefer: handling=strict").check(t, 400, "VALIDATION_ERROR")
	e.act("crm", "replay", "id=x", "Content-Type: application/x-www-form-urlencoded").check(t, 415, "UNSUPPORTED_MEDIA_TYPE")
	e.act("crm", "replay", `{"id": "x"}`).check(t, 404, "NOT_FOUND")

	for query, want := range map[string]string{"?state=lost": "state", "?state=": "state", "?event=domain.*": "event", "?event=domian.update": "event", "?from=x&to=y": "from to",
		"?from=2020-01-02T00:00:00&to=2020-01-01T00:00:00": "to", "?sort=id": "sort", "?order=up": "order", "?limit=101": "limit", "?page=0": "page", "?stat=dead": "stat",
		"?state=dead&state=dead": "state", "?projectId=1&ids=2": "projectId ids", "?%FF=1": "\uFFFD", "?from=%zz": "from"} {
		a := e.ask("GET", webhooksPath+"/crm/deliveries"+query, e.key)
		a.check(t, 400, "VALIDATION_ERROR")
		got := a.fields()
		slices.Sort(got)
		wants := strings.Fields(want)
		slices.Sort(wants)
		if !slices.Equal(got, wants) {
			t.Errorf("%s: details for %q, want %q: %s", query, got, wants, a.body)
		}
	}
	if a := e.ask("GET", webhooksPath+"/crm/deliveries?event=domian.update", e.key); !strings.Contains(string(a.body), "did you mean domain.update?") {
		t.Errorf("%s", a.body)
	}
	tag := e.ask("GET", webhooksPath+"/crm", e.key).Header.Get("ETag")
	for _, call := range []string{"test", "resume", "replay"} {
		a := e.act("crm", call, `{"id": "x"}`, "X-Propose: new-shop")
		if a.check(t, 400, "VALIDATION_ERROR"); !slices.Equal(a.fields(), []string{"X-Propose"}) {
			t.Errorf("%s: %s", call, a.body)
		}
		a = e.act("crm", call+"?dryRun=1", `{"id": "x"}`)
		if a.check(t, 400, "VALIDATION_ERROR"); !slices.Equal(a.fields(), []string{"dryRun"}) {
			t.Errorf("%s: %s", call, a.body)
		}
		e.act("crm", call, `{"id": "x"}`, `If-Match: "stale"`).check(t, 412, "PRECONDITION_FAILED")
		e.act("crm", call+"?dryRun=0", strings.Repeat("x", 1<<20), `If-Match: "stale"`).check(t, 412, "PRECONDITION_FAILED")
		e.act("a%20b", call, "").check(t, 400, "VALIDATION_ERROR")
		e.act("nobody", call, "").check(t, 404, "NOT_FOUND")
	}
	e.ask("GET", webhooksPath+"/crm/deliveries", e.key, "X-Propose: new-shop").check(t, 400, "VALIDATION_ERROR")
	if got := e.ids(); len(got) != 0 {
		t.Errorf("the receiver got %q", got)
	}
	for range 2 { // Idempotency-Key has no effect
		e.act("crm", "test", `{"anything": true}`, "If-Match: "+tag, "Idempotency-Key: once").check(t, 200, "")
	}
	if got := e.ids(); len(got) != 2 {
		t.Errorf("the receiver got %q", got)
	}
}

// TestWebhookCallsWithoutEngine: they say why they cannot be answered, after everything else is checked.
func TestWebhookCallsWithoutEngine(t *testing.T) {
	t.Parallel()
	d := newWebhookDesk(t)
	d.askBody("POST", webhooksPath, d.key, `{"name": "crm", "url": "https://crm.example/x"}`).check(t, 201, "")
	for _, call := range []string{"GET deliveries", "POST test", "POST resume", "POST replay"} {
		method, path, _ := strings.Cut(call, " ")
		a := d.ask(method, webhooksPath+"/crm/"+path, d.key)
		if a.check(t, 503, "UNAVAILABLE"); !strings.Contains(string(a.body), "--webhooks=false") || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s", a.body)
		}
		d.ask(method, webhooksPath+"/nobody/"+path, d.key).check(t, 404, "NOT_FOUND")
	}
	if a := d.ask("GET", webhooksPath, d.key); a.StatusCode != 200 || strings.Contains(string(a.body), "delivery") {
		t.Errorf("%s", a.body)
	}
	d.ask("GET", webhooksPath+"/crm/deliveries?state="+url.QueryEscape("no such"), d.key).check(t, 400, "VALIDATION_ERROR")
}
