package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// A mailCare is a post whose project has a template with a category, and further keys.
type mailCare struct {
	*post
	links                    *signedlink.Recipients
	writer, support, strange string // keys: write on post; write and mail on post; write and read on mute
}

func startMailCare(t testing.TB, changes ...func(*api.Options)) *mailCare {
	t.Helper()
	m := &mailCare{}
	m.post = startPost(t, newSink(t), func(o *mailer.Options) {
		o.UnsubscribeLink = func(of signedlink.Subscription) (string, error) {
			link, err := m.links.Make(of)
			return "https://post.example" + signedlink.RecipientPath + link, err
		}
	}, changes...)
	m.links = signedlink.NewRecipients(m.resolver)
	d := m.mailFixture()
	for i := range d.Projects {
		if p := &d.Projects[i]; p.Project.ID == postID {
			news := template(postID, 9, "NEWS", "News", "Leave: {{unsubscribeUrl}}", true)
			news.Category = "newsletter"
			p.Templates = append(p.Templates, news)
		}
	}
	m.writer = m.newKey(d, "list-writer", catalog.MayWrite|catalog.MayRead, "post")
	m.support = m.newKey(d, "list-support", catalog.MayWrite|catalog.MayMail|catalog.MayRead, "post")
	m.strange = m.newKey(d, "list-stranger", catalog.MayWrite|catalog.MayRead|catalog.MayMail, "mute")
	m.apply("mail.hcl", d)
	return m
}

const postList = "/projects/41/suppressions"

// rows returns the data of a list.
func rowsOf(a *answer) (rows []string) {
	list, _ := a.json["data"].([]any)
	for _, row := range list {
		o := row.(map[string]any)
		rows = append(rows, fmt.Sprint(o["address"], " ", o["reason"], " ", o["category"], " ", o["note"], " ", o["by"]))
	}
	return rows
}

// TestSuppressionList goes through the life of a list.
func TestSuppressionList(t *testing.T) {
	m := startMailCare(t)
	ask := func(method, query, body string, status int, headers ...string) *answer {
		t.Helper()
		a := m.ask(method, postList+query, m.writer, body, headers...)
		a.check(t, status, map[int]string{404: "NOT_FOUND"}[status])
		return a
	}
	made := ask("POST", "", `{"address":"Ada@Bücher.example","note":"asked by phone"}`, 201, "X-Actor: Grace <grace@post.example>")
	if d := made.data(); d["address"] != "Ada@xn--bcher-kva.example" || d["reason"] != "manual" || d["category"] != nil ||
		d["note"] != "asked by phone" || d["by"] != "Grace <grace@post.example>" || d["createdAt"] == nil {
		t.Errorf("%s", made.body)
	}
	again := ask("POST", "", `{"address":"ada@xn--bcher-kva.example","note":"other"}`, 200)
	if dataOf(again) != dataOf(made) {
		t.Errorf("%s, want %s", again.body, made.body)
	}
	many := `{"suppressions":[{"address":"ada@bücher.example","reason":"manual"},{"address":"bob@a.example","reason":"hard_bounce"},
		{"address":"eve@a.example","reason":"unsubscribe","category":"newsletter"},{"address":"BOB@a.example","reason":"hard_bounce","category":null}]}`
	if a := ask("POST", "", many, 201); dataOf(a) != `{"added":2,"present":2}` {
		t.Errorf("%s", a.body)
	}
	if a := ask("POST", "", many, 200); dataOf(a) != `{"added":0,"present":4}` {
		t.Errorf("%s", a.body)
	}
	const ada, bob, eve = "Ada@xn--bcher-kva.example manual <nil> asked by phone Grace <grace@post.example>",
		"bob@a.example hard_bounce <nil> <nil> list-writer", "eve@a.example unsubscribe newsletter <nil> list-writer"
	list := func(query string, total float64, want ...string) {
		t.Helper()
		a := ask("GET", query, "", 200)
		if meta := a.json["meta"].(map[string]any); !slices.Equal(rowsOf(a), want) || meta["total"] != total {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	list("", 3, ada, bob, eve)
	list("?order=desc&limit=2&page=2", 3, ada)
	list("?page=9", 3)
	list("?address=BOB%40a.example", 1, bob)
	list("?reason=unsubscribe&category=newsletter", 1, eve)
	list("?q=%40A.", 2, bob, eve)
	if a := ask("DELETE", "?address=EVE%40a.example&reason=unsubscribe&category=newsletter", "", 200); dataOf(a) != `{"removed":1}` {
		t.Errorf("%s", a.body)
	}
	ask("DELETE", "?address=eve%40a.example", "", 404)
	ask("POST", "", `{"suppressions":[{"address":"kim@a.example","reason":"unsubscribe"},{"address":"kim@a.example","reason":"unsubscribe","category":"newsletter"}]}`, 201)
	list("?category=-&reason=unsubscribe", 1, "kim@a.example unsubscribe <nil> <nil> list-writer")
	ask("DELETE", "?address=kim%40a.example&reason=unsubscribe&category=-", "", 200)
	list("?address=kim%40a.example", 1, "kim@a.example unsubscribe newsletter <nil> list-writer")
	ask("DELETE", "?address=kim%40a.example&category=-", "", 404)
	ask("DELETE", "?address=kim%40a.example", "", 200)
	ask("DELETE", "?address=bob%40a.example&reason=complaint", "", 404)
	list("", 2, ada, bob)

	trail := m.ask2("/api/platform/audit?order=asc&limit=100&projectId=41", m.reader)
	var got []string
	for _, row := range trail.json["data"].([]any) {
		o := row.(map[string]any)
		if action, _ := o["action"].(string); strings.HasPrefix(action, "suppression.") {
			got = append(got, fmt.Sprint(action, " ", o["object"], " ", o["door"], " ", o["actor"], " ", o["changes"].([]any)[0].(map[string]any)["after"]))
		}
	}
	want := []string{"suppression.add Ada@xn--bcher-kva.example api Grace <grace@post.example> 1", "suppression.add <nil> api list-writer 2",
		"suppression.remove eve@a.example api list-writer 1", "suppression.add kim@a.example api list-writer 2",
		"suppression.remove kim@a.example api list-writer 1", "suppression.remove kim@a.example api list-writer 1"}
	if !slices.Equal(got, want) {
		t.Errorf("the trail has %q, want %q", got, want)
	}
}

// ask2 reads from the platform API.
func (p *post) ask2(path, key string) *answer {
	p.t.Helper()
	a := p.house.ask("GET", path, key)
	a.check(p.t, 200, "")
	return a
}

// TestSuppressionsBadInput: bad input gets all its problems at once, with their places, and changes nothing.
func TestSuppressionsBadInput(t *testing.T) {
	m := startMailCare(t)
	f := func(method, query, body string, want ...string) {
		t.Helper()
		a := m.ask(method, postList+query, m.writer, body)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := a.fields(); !slices.Equal(got, want) {
			t.Errorf("%s %s %.200s: fields %q, want %q: %s", method, query, body, got, want, a.body)
		}
	}
	f("POST", "", `{}`, "address")
	f("POST", "", `[]`, "body")
	f("POST", "", `{"address":"a@b@c","reason":"bounce","category":"No","note":"a\nb"}`, "address", "reason", "category", "note")
	f("POST", "", `{"address":1,"reason":2,"category":3,"note":4}`, "address", "reason", "category", "note")
	f("POST", "", `{"address":"a@b.example","reason":"complaint","category":"newsletter"}`, "category")
	f("POST", "", `{"address":"a@b.example","reason":"unsubscribe","category":"-"}`, "category")
	f("POST", "", `{"address":"a@b.example","note":"`+strings.Repeat("x", 501)+`"}`, "note")
	f("POST", "", `{"suppressions":[]}`, "suppressions")
	f("POST", "", `{"suppressions":{}}`, "suppressions")
	f("POST", "", `{"suppressions":[`+strings.TrimSuffix(strings.Repeat(`{"address":"a@b.example"},`, 1001), ",")+`]}`, "suppressions")
	f("POST", "", `{"address":"a@b.example","suppressions":[{"address":"a@b.example"}]}`, "address")
	f("POST", "", `{"suppressions":[{"address":"a@b.example"},7,{"address":"x"},{"reason":"no"}]}`, "suppressions[1]", "suppressions[2].address",
		"suppressions[3].address", "suppressions[3].reason")
	f("POST", "?dryRun=1", `{"address":"a@b.example"}`, "dryRun")
	f("DELETE", "", "", "address")
	f("DELETE", "?to=a%40b.example", "", "to")
	f("DELETE", "?address=a%40b.example&q=a", "", "q")
	f("DELETE", "?address=a%40b.example&address=b%40b.example", "", "address")
	f("DELETE", "?address=x&reason=no&category=No", "", "address", "reason", "category")
	f("DELETE", "?address=a%40b.example&dryRun=1", "", "dryRun")
	f("GET", "?sort=reason", "", "sort")
	f("GET", "?resaon=manual", "", "resaon")
	f("GET", "?reason=&category=No&page=0", "", "reason", "category", "page")
	if a := m.ask("GET", postList, m.writer, ""); len(rowsOf(a)) != 0 {
		t.Errorf("%s", a.body)
	}
	m.ask("POST", postList, m.writer, `{"address":"a@b.example"}`, "X-Propose: new").check(t, 400, "VALIDATION_ERROR")
}

// TestSuppressionsOfOthers: a tenant's key can neither see nor change another tenant's list, and its own list stops only
// its own mail.
func TestSuppressionsOfOthers(t *testing.T) {
	m := startMailCare(t)
	m.ask("POST", postList, m.writer, `{"address":"ada@example.com","reason":"complaint"}`).check(t, 201, "")
	for _, key := range []string{m.strange, m.other, m.poster} {
		allowed := key == m.poster // which may read it
		for _, c := range [][2]string{{"GET", postList}, {"POST", postList}, {"DELETE", postList + "?address=ada%40example.com"}} {
			a := m.ask(c[0], c[1], key, map[string]string{"POST": `{"address":"ada@example.com"}`}[c[0]])
			if allowed && c[0] == "GET" {
				a.check(t, 200, "")
			} else if a.check(t, 403, "FORBIDDEN"); strings.Contains(string(a.body), "ada@") {
				t.Errorf("%s", a.body)
			}
		}
	}
	if rows := rowsOf(m.ask("GET", postList, m.writer, "")); len(rows) != 1 {
		t.Errorf("%q", rows)
	}
	if rows := rowsOf(m.ask("GET", "/projects/42/suppressions", m.strange, "")); len(rows) != 0 {
		t.Errorf("%q", rows)
	}
	sent := m.ask("POST", "/send/test-template", m.strange, `{"projectId":42,"toEmail":"ada@example.com","templateCode":"PLAIN"}`)
	if sent.check(t, 200, ""); sent.data()["sent"] != true {
		t.Errorf("%s", sent.body)
	}
}

// TestSuppressedSend: a stopped mail is answered with its reason and its entry, a repeat with the same, and only who may
// write ignores the list.
func TestSuppressedSend(t *testing.T) {
	m := startMailCare(t)
	m.ask("POST", postList, m.writer, `{"suppressions":[{"address":"ada@example.com","reason":"hard_bounce"},
		{"address":"ada@example.com","reason":"unsubscribe"}]}`).check(t, 201, "")
	const raw = `{"domain":"post.example","toEmail":"Ada@example.com","subject":"Hi","bodyText":"Hello"`
	first := m.ask("POST", "/send/raw", m.poster, raw+`}`, "Idempotency-Key: one")
	first.check(t, 200, "")
	entry := m.entry(first)
	if d := first.data(); d["sent"] != false || d["suppressed"] != true || d["reason"] != "hard_bounce" || d["logId"] != entry["id"] || len(d) != 4 {
		t.Errorf("%s", first.body)
	}
	if entry["status"] != "SUPPRESSED" || entry["errorCode"] != "SUPPRESSED" || entry["attempts"] != 0.0 || entry["sentAt"] != nil {
		t.Errorf("%v", entry)
	}
	repeat := m.ask("POST", "/send/raw", m.poster, raw+`}`, "Idempotency-Key: one")
	if repeat.check(t, 200, ""); dataOf(repeat) != dataOf(first) || repeat.Header.Get("Idempotent-Replay") != "true" {
		t.Errorf("%s", repeat.body)
	}
	log := m.ask("GET", "/projects/41/logs?status=SUPPRESSED", m.reader, "")
	if log.check(t, 200, ""); log.json["meta"].(map[string]any)["total"] != 1.0 {
		t.Errorf("%s", log.body)
	}
	ignoring := func(list string) string { return raw + `,"ignoreSuppression":` + list + `}` }
	m.ask("POST", "/send/raw", m.poster, ignoring(`["hard_bounce"]`)).check(t, 403, "FORBIDDEN")
	m.ask("POST", "/send/raw", m.poster, strings.Replace(ignoring(`["hard_bounce"]`), "Ada@", "eve@", 1)).check(t, 403, "FORBIDDEN")
	m.ask("POST", "/send/raw", m.poster, strings.Replace(ignoring(`[]`), "Ada@", "eve@", 1)).check(t, 200, "")
	for list, want := range map[string]string{`["unsubscribe"]`: "ignoreSuppression[0]", `"hard_bounce"`: "ignoreSuppression",
		`["manual","bounce",7]`: "ignoreSuppression[1] ignoreSuppression[2]"} {
		a := m.ask("POST", "/send/raw", m.poster, ignoring(list))
		if a.check(t, 400, "VALIDATION_ERROR"); strings.Join(a.fields(), " ") != want {
			t.Errorf("%s: %q", list, a.fields())
		}
	}
	if a := m.ask("POST", "/send/raw", m.support, ignoring(`["hard_bounce"]`)); a.data()["sent"] != true {
		t.Errorf("%s", a.body)
	}
	news := `{"domain":"post.example","toEmail":"Ada@example.com","templateCode":"NEWS","ignoreSuppression":["hard_bounce"]}`
	if a := m.ask("POST", "/send/template", m.support, news); a.data()["reason"] != "unsubscribe" {
		t.Errorf("%s", a.body)
	}
}

// TestUnsubscribeField: the caller's own link is checked, and is for templates with a category.
func TestUnsubscribeField(t *testing.T) {
	m := startMailCare(t)
	send := func(code, unsubscribe string) *answer {
		return m.ask("POST", "/send/template", m.poster, `{"domain":"post.example","toEmail":"ada@example.com","templateCode":"`+code+`","unsubscribe":`+unsubscribe+`}`)
	}
	for _, bad := range []string{`7`, `{}`, `{"url":7}`, `{"url":"http://a.example/"}`, `{"url":"https://a.example/<x>"}`, `{"url":"https://u@a.example/"}`,
		`{"url":"https://ä.example/"}`, `{"url":"https://a.example/` + strings.Repeat("x", 900) + `"}`} {
		if a := send("NEWS", bad); a.StatusCode != 400 || !strings.HasPrefix(a.fields()[0], "unsubscribe") {
			t.Errorf("%.80s: %s", bad, a.body)
		}
	}
	send("PLAIN", `{"url":"https://a.example/"}`).check(t, 400, "VALIDATION_ERROR")
	send("NEWS", `{"url":"https://a.example/`+strings.Repeat("x", 880)+`"}`).check(t, 200, "")
	send("NEWS", `null`).check(t, 200, "")
	shown := m.ask("POST", "/projects/41/templates/preview", m.writer, `{"templateCode":"NEWS"}`)
	if shown.check(t, 200, ""); len(shown.data()["missing"].([]any)) != 0 || !strings.Contains(string(shown.body), "Leave: https://unsubscribe.example/") {
		t.Errorf("%s", shown.body)
	}
}

// TestCategoryNeedsPublicURL: a category is saved only where the service has an address for its links.
func TestCategoryNeedsPublicURL(t *testing.T) {
	t.Parallel()
	files := map[string]string{"acme.hcl": `project "acme" {
  name = "Acme"
  template "OLD" {
    name             = "Old"
    subject_template = "Old"
    body_text        = "Old"
    category         = "newsletter"
  }
}
`}
	d := newDesk(t, files)
	save := func(body string) *answer {
		t.Helper()
		return d.mail(t, "POST", fmt.Sprintf("/projects/%d/templates", d.projectID(t, "acme")), body)
	}
	a := save(`{"code":"NEWS","name":"News","subjectTemplate":"News","bodyText":"x","category":"newsletter"}`)
	if a.check(t, 409, "PUBLIC_URL_MISSING"); !strings.Contains(string(a.body), "--public-url") {
		t.Errorf("%s", a.body)
	}
	save(`{"code":"OLD","name":"Older","category":"newsletter"}`).check(t, 200, "") // nothing new
	save(`{"code":"OLD","category":"offers"}`).check(t, 409, "PUBLIC_URL_MISSING")
	save(`{"code":"OLD","category":"No"}`).check(t, 400, "VALIDATION_ERROR")
	cleared := save(`{"code":"OLD","category":null}`)
	if cleared.check(t, 200, ""); strings.Contains(string(cleared.body), "category") {
		t.Errorf("%s", cleared.body)
	}
}
