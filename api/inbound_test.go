package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/mailer/inbound"
	"fingerpost/resolver/catalog"
)

const inboundSecret = "relay-secret-0123456789"

// An inboundHouse is a mailCare with inbound blocks: relay for the project "post", and both for "post" and "mute".
type inboundHouse struct {
	*mailCare
	desk *inbound.Desk
}

func startInbound(t testing.TB, changes ...func(*api.Options)) *inboundHouse {
	t.Helper()
	h := &inboundHouse{}
	desk := func(o *api.Options) {
		h.desk = inbound.New(inbound.Options{Blocks: o.Resolver.Inbounds, Ledger: o.Resolver, Projects: o.Resolver, Logger: o.Logger,
			Secrets: func(b *catalog.Inbound) (list []string, err error) {
				for _, s := range b.Secrets {
					list = append(list, s.Ref)
				}
				return list, nil
			}})
		o.Config.Inbound = h.desk
	}
	h.mailCare = startMailCare(t, append([]func(*api.Options){desk}, changes...)...)
	d := &catalog.Declared{}
	for name, projects := range map[string][]string{"relay": {"post"}, "both": {"post", "mute"}} {
		b := catalog.NewInbound(name)
		b.Format, b.Projects, b.Secrets = catalog.InboundJSON, projects, []catalog.Secret{{Source: catalog.SecretPlain, Ref: inboundSecret}}
		d.Inbounds = append(d.Inbounds, *b)
	}
	h.apply("inbound.hcl", d)
	return h
}

// tell sends a message as a provider does: without the two headers of the mail service.
func (h *inboundHouse) tell(name, body string, headers ...string) *answer {
	h.t.Helper()
	return h.askBody("POST", "/api/mail/inbound/"+name, "", body, headers...)
}

const asBearer = "Authorization: Bearer " + inboundSecret

func asBasic(password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("fingerpost:"+password))
}

func outcomeOf(typ, email string, project int64) string {
	m := map[string]any{"type": typ, "email": email, "at": time.Now().UTC().Format(time.RFC3339Nano), "detail": "550 5.1.1 unknown"}
	if project != 0 {
		m["projectId"] = project
	}
	out, _ := json.Marshal(m)
	return string(out)
}

// TestInbound: an outcome stops the next mail, once, and a person's removal is the last word.
func TestInbound(t *testing.T) {
	h := startInbound(t)
	f := func(a *answer, want string) {
		t.Helper()
		a.check(t, 200, "")
		if got := dataOf(a); got != want {
			t.Errorf("%s, want %s", a.body, want)
		}
	}
	const listed, repeated = `{"listed":1,"present":0,"repeated":0,"ignored":0,"unmatched":0}`, `{"listed":0,"present":0,"repeated":1,"ignored":0,"unmatched":0}`
	message := outcomeOf("hard_bounce", "ada@example.com", 0)
	f(h.tell("relay", message, asBearer), listed)
	f(h.tell("relay", message, asBasic(inboundSecret), "Content-Type: application/json"), repeated)
	if rows := rowsOf(h.ask("GET", postList, h.writer, "")); len(rows) != 1 || rows[0] != "ada@example.com hard_bounce <nil> relay: 550 5.1.1 unknown <nil>" {
		t.Errorf("%q", rows)
	}
	mail := h.ask("POST", "/send/template", h.poster, `{"domain":"post.example","toEmail":"ADA@example.com","templateCode":"PLAIN"}`)
	if mail.StatusCode != 200 || !strings.Contains(string(mail.body), `"suppressed":true,"reason":"hard_bounce"`) {
		t.Errorf("%s", mail.body)
	}
	h.ask("DELETE", postList+"?address=ada@example.com", h.writer, "").check(t, 200, "")
	f(h.tell("relay", message, asBearer), repeated)
	if rows := rowsOf(h.ask("GET", postList, h.writer, "")); len(rows) != 0 {
		t.Errorf("%q", rows)
	}
	trail := h.ask2("/api/platform/audit?limit=100&action=suppression.add", h.reader)
	if n := strings.Count(string(trail.body), `"door":"inbound","actor":null`); n != 1 {
		t.Errorf("%d entries of the trail: %s", n, trail.body)
	}
	// Another tenant's project is not touched, whatever the message says.
	const unmatched = `{"listed":0,"present":0,"repeated":0,"ignored":0,"unmatched":1}`
	f(h.tell("relay", outcomeOf("complaint", "eve@example.com", muteID), asBearer), unmatched)
	f(h.tell("both", outcomeOf("complaint", "eve@example.com", 0), asBearer), unmatched)
	f(h.tell("both", outcomeOf("complaint", "eve@example.com", muteID), asBearer), listed)

	a := h.tell("relay", `{"type":"soft","email":"x"}`, asBearer)
	a.check(t, 400, "VALIDATION_ERROR")
	if got := fmt.Sprint(a.fields()); got != "[type email at]" {
		t.Errorf("problems with %s", got)
	}
	for _, bad := range []string{"", "[]", `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)} {
		h.tell("relay", bad, asBearer).check(t, 400, "VALIDATION_ERROR")
	}
	h.askBody("GET", "/api/mail/inbound/relay", "", "", asBearer).check(t, 405, "METHOD_NOT_ALLOWED")
	h.askBody("POST", "/api/mail/inbound/", "", "{}", asBearer).check(t, 404, "NOT_FOUND")
	h.askBody("POST", "/api/mail/inbound/relay?dryRun=1", "", "{}", asBearer).check(t, 400, "VALIDATION_ERROR")
}

// TestInboundSecret: a wrong secret, none, and an unknown name get the same bytes before the body is read. Guesses are
// throttled, and neither lock out the provider nor count without a guess.
func TestInboundSecret(t *testing.T) {
	h := startInbound(t)
	same := func(a *answer) string {
		text := string(a.body)
		a.check(t, 401, "UNAUTHORIZED")
		if a.Header.Get("WWW-Authenticate") != `Basic realm="inbound"` || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", a.Header)
		}
		_, text, _ = strings.Cut(text, `"error"`)
		text, _, _ = strings.Cut(text, `"timestamp"`)
		for _, name := range []string{"relay", "nobody"} {
			text = strings.ReplaceAll(text, "/"+name+`"`, `/X"`)
		}
		return text
	}
	want := same(h.tell("relay", "{}"))
	for range 30 { // SNS asks for each message without the secret first
		if got := same(h.tell("relay", "{}")); got != want {
			t.Fatalf("%s", got)
		}
	}
	for _, name := range []string{"relay", "nobody"} {
		for _, wrong := range [][]string{nil, {asBearer + "x"}, {asBasic("wrong")}, {asBearer, asBearer}, {"X-Internal-Service-Token: " + h.writer, "X-Internal-Service-Name: x"}} {
			if got := same(h.tell(name, "{}", wrong...)); got != want {
				t.Errorf("%s, %q: %s, want %s", name, wrong, got, want)
			}
		}
	}
	// The body of a stranger is not read: the answer comes although most of it never does.
	c := h.dial()
	defer c.Close()
	c.send("POST /api/mail/inbound/relay HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n{")
	a, err := c.read("POST")
	if err != nil {
		t.Fatal(err)
	}
	if got := same(a); got != want {
		t.Errorf("%s", got)
	}
	throttled := false
	for range 1000 { // one more is free every three seconds
		if throttled = h.tell("nobody", "{}", asBasic("guess")).StatusCode == 429; throttled {
			break
		}
	}
	if !throttled {
		t.Error("no guess was throttled")
	}
	h.tell("relay", outcomeOf("complaint", "eve@example.com", 0), asBearer).check(t, 200, "")
	if log := h.log.String(); strings.Contains(log, inboundSecret) || strings.Contains(log, "guess") {
		t.Error("a secret is in the log")
	}
}

// TestInboundBounds: a body of more than 1 MiB is refused, and one of a MiB is not what fills the others' share.
func TestInboundBounds(t *testing.T) {
	h := startInbound(t)
	h.tell("relay", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`, asBearer).check(t, 413, "PAYLOAD_TOO_LARGE")
	h.tell("relay", `{"a":"`+strings.Repeat("x", 1<<20-100)+`"}`, asBearer).check(t, 400, "VALIDATION_ERROR")
	h = startInbound(t, func(o *api.Options) { o.Config.ReadOnly = true })
	a := h.tell("relay", outcomeOf("complaint", "eve@example.com", 0), asBearer)
	a.check(t, 503, "UNAVAILABLE")
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("%v", a.Header)
	}
	h.tell("relay", "{}").check(t, 401, "UNAUTHORIZED")
	none := startMailCare(t)
	none.askBody("POST", "/api/mail/inbound/relay", "", "{}", asBearer).check(t, 503, "UNAVAILABLE")
}

// TestSuppressionListIsFull: a list that has as many entries as it may takes no more, from a person or from a provider. A
// provider that is told 409 sends again, and its outcome is listed once there is room.
func TestSuppressionListIsFull(t *testing.T) {
	testrig.Campaign(t)
	h := startInbound(t)
	list := make([]catalog.Suppression, 100_000)
	for n := 0; n < catalog.MaxSuppressions; n += len(list) {
		for i := range list {
			list[i] = catalog.Suppression{Address: fmt.Sprintf("u%d@example.com", n+i), Reason: catalog.SuppressHardBounce}
		}
		if _, err := h.resolver.Suppress(postID, list, catalog.Author{}, false); err != nil {
			t.Fatal(err)
		}
	}
	outcome := outcomeOf("complaint", "eve@example.com", postID)
	h.tell("relay", outcome, asBearer).check(t, 409, "CONFLICT")
	if got := h.desk.Troubles(); len(got) != 1 || got[0].Block != "relay" || got[0].ListFull.IsZero() {
		t.Errorf("%+v", got)
	}
	h.ask("POST", postList, h.writer, `{"address":"eve@example.com","reason":"manual"}`).check(t, 409, "CONFLICT")
	h.tell("relay", outcomeOf("hard_bounce", "u7@example.com", postID), asBearer).check(t, 200, "") // is there
	h.tell("both", outcomeOf("complaint", "eve@example.com", muteID), asBearer).check(t, 200, "")   // another list
	h.ask("DELETE", postList+"?address=u7@example.com", h.writer, "").check(t, 200, "")
	if a := h.tell("relay", outcome, asBearer); dataOf(a) != `{"listed":1,"present":0,"repeated":0,"ignored":0,"unmatched":0}` {
		t.Errorf("%s", a.body)
	}
}

// TestInboundAtAnEdge: an edge checks the secret, and passes on what has it.
func TestInboundAtAnEdge(t *testing.T) {
	const taken = `{"success":true,"message":"outcomes taken","data":{"listed":1,"present":0,"repeated":0,"ignored":0,"unmatched":0},"timestamp":"2026-01-31T09:30:00.123456"}`
	a := &standIn{answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nX-Request-Id: x\r\nContent-Length: %d\r\n\r\n%s", len(taken), taken)}
	h := startInbound(t, func(o *api.Options) { o.Cluster.Edge = a })
	h.tell("relay", "{}").check(t, 401, "UNAUTHORIZED")
	h.tell("relay", "{}", asBearer+"x").check(t, 401, "UNAUTHORIZED")
	if got := a.requests(); len(got) != 0 {
		t.Errorf("the authority gets %q", got)
	}
	c := h.dial()
	defer c.Close()
	c.send("POST /api/mail/inbound/relay HTTP/1.1\r\nHost: test\r\n" + asBearer + "\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 7\r\n\r\n{\"a\":1}")
	if got, err := c.read("POST"); err != nil || string(got.body) != taken {
		t.Errorf("%v, %v", got, err)
	}
	if got := a.requests(); len(got) != 1 || !strings.HasPrefix(got[0], "POST /api/mail/inbound/relay HTTP/1.1\r\n") || !strings.HasSuffix(got[0], "\r\n\r\n{\"a\":1}") ||
		!strings.Contains(got[0], asBearer) || !strings.Contains(got[0], "text/plain") {
		t.Errorf("the authority gets %q", got)
	}
}
