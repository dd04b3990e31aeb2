package api_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/records"
)

// Bad input gets all its problems at once, and changes nothing.
func TestKeysBadInput(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	const path = "/api/platform/keys"
	f := func(body string, headers []string, want ...string) {
		t.Helper()
		a := d.askBody("POST", path, d.key, body, headers...)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := a.fields(); !slices.Equal(got, want) {
			t.Errorf("%s: details for %q, want %q: %s", body, got, want, a.body)
		}
	}
	says := func(body, want string) {
		t.Helper()
		if a := d.askBody("POST", path, d.key, body); a.StatusCode != 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %s, want %s", body, a.body, want)
		}
	}
	strict := []string{"Prefer: handling=strict"}
	f(`{}`, nil, "name", "allow")
	f(`{"name": 1, "allow": "read", "projects": "acme", "expiresAt": 5, "expiresIn": {}}`, nil, "name", "allow", "projects", "expiresAt", "expiresIn")
	f(`{"name": null, "allow": null}`, nil, "name", "allow")
	f(`{"name": "a b", "allow": ["raed", "read", "read", 7], "projects": ["acme", "acem", "acme", "No", 1], "expiresAt": "2001-01-01T00:00:00", "expiresIn": "1h"}`, nil,
		"name", "allow[2]", "allow[3]", "allow[0]", "projects[2]", "projects[4]", "projects[1]", "projects[3]", "expiresAt", "expiresIn")
	f(`{"name": "x", "allow": [], "projects": []}`, nil, "allow", "projects")
	f(`{"name": "x", "allow": ["read"], "fly": true, "projects": ["nobody"]}`, strict, "fly", "projects[0]")
	for _, at := range []string{"tomorrow", "2031-02-30T00:00:00", "2031-01-01", "1969-01-01T00:00:00"} {
		f(`{"name": "x", "allow": ["read"], "expiresAt": "`+at+`"}`, nil, "expiresAt")
	}
	for _, in := range []string{"0s", "-1h", "90", "1y", "", "99999999999h"} {
		f(`{"name": "x", "allow": ["read"], "expiresIn": "`+in+`"}`, nil, "expiresIn")
	}
	f(`{"name": "`+strings.Repeat("n", 65)+`", "allow": ["read"]}`, nil, "name")
	f(`["name"]`, nil, "body")
	f(`{"name": "x", "name": "y"}`, nil, "body")
	f(`{"name": "x"`, nil, "body")
	says(`{"name": "x", "allow": ["raed"]}`, "did you mean read?")
	says(`{"name": "x", "allow": ["read"], "projects": ["acem"]}`, "did you mean acme?")
	d.askBody("POST", path, d.key, "name=x", "Content-Type: text/plain").check(t, 415, "UNSUPPORTED_MEDIA_TYPE")
	for _, q := range []string{"?page=0", "?sort=hash", "?order=up", "?limit=101"} {
		d.ask("GET", path+q, d.key).check(t, 400, "VALIDATION_ERROR")
	}
	for _, overlap := range []string{`"-1s"`, `"721h"`, `"31d"`, `1`, `null`, `""`, `"soon"`} {
		a := d.askBody("POST", path+"/story/rotate", d.key, `{"overlap": `+overlap+`}`)
		a.check(t, 400, "VALIDATION_ERROR")
		if !slices.Equal(a.fields(), []string{"overlap"}) {
			t.Errorf("overlap %s: %s", overlap, a.body)
		}
	}
	for _, name := range []string{"-", "a%20b", "a%2Db", strings.Repeat("n", 65), "%C3%BC"} {
		d.ask("DELETE", path+"/"+name, d.key).check(t, 400, "VALIDATION_ERROR")
		d.ask("POST", path+"/"+name+"/rotate", d.key).check(t, 400, "VALIDATION_ERROR")
	}
	d.ask("DELETE", path+"/nobody", d.key).check(t, 404, "NOT_FOUND")
	d.ask("PUT", path, d.key).check(t, 405, "METHOD_NOT_ALLOWED")
	d.ask("GET", path+"/story", d.key).check(t, 405, "METHOD_NOT_ALLOWED")
	d.ask("GET", path, "").check(t, 401, "UNAUTHORIZED")
	if n := d.resolver.Keys().Len(); n != 1 {
		t.Errorf("there are %d keys", n)
	}
	// What a client has read it may send back.
	d.askBody("POST", path, d.key, `{"name": "x", "id": "1", "allow": ["read"], "createdAt": null, "lastUsedAt": null}`, strict...).check(t, 201, "")
}

// A keyNode is a server with a data directory.
type keyNode struct {
	*house
	text string
}

func newKeyNode(t *testing.T, data string, text string, o resolver.DiskOptions) keyNode {
	t.Helper()
	h := &house{t: t, log: &testrig.Log{}, served: make(chan error, 1)}
	var err error
	log := slog.New(slog.NewJSONHandler(h.log, nil))
	if h.resolver, err = resolver.Open(resolver.Options{DataDir: data, Logger: log, CacheBytes: 1 << 20, Disk: o}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.resolver.Close() })
	id, _ := catalog.KeyTextID([]byte(text))
	hash, _ := catalog.ParseKeyHash(catalog.HashKeyText(text))
	idle := catalog.Key{Name: "idle", Allow: catalog.MayRead}
	idle.Renew()
	idle.ID = "idle1234"
	h.apply("keys.hcl", &catalog.Declared{Keys: []catalog.Key{idle, {Name: "ops", ID: string(id), Hash: hash, Allow: catalog.MayAll}}})
	if h.server, err = api.New(api.Options{Resolver: h.resolver, Logger: log}); err != nil {
		t.Fatal(err)
	}
	h.addr = h.listen(api.Platform)
	return keyNode{h, text}
}

// times returns createdAt and lastUsedAt of a key, "" for null.
func (n keyNode) times(name string) (created, used string) {
	n.t.Helper()
	a := n.ask("GET", "/api/platform/keys", n.text)
	a.check(n.t, 200, "")
	for _, row := range a.json["data"].([]any) {
		if row := row.(map[string]any); row["name"] == name {
			created, _ = row["createdAt"].(string)
			used, _ = row["lastUsedAt"].(string)
		}
	}
	return created, used
}

// thisMinute reports whether a time of an answer is the present minute, or the one before.
func thisMinute(text string) bool {
	at, err := time.Parse("2006-01-02T15:04:05.000000", text)
	return err == nil && at.Second() == 0 && at.Nanosecond() == 0 && time.Since(at) >= 0 && time.Since(at) < 2*time.Minute
}

// The uses of keys survive a restart.
func TestKeyLastUsed(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	data := t.TempDir()
	text, _ := catalog.NewKeyText()
	first := newKeyNode(t, data, text, resolver.DiskOptions{})
	idleCreated, idle := first.times("idle")
	created, used := first.times("ops") // the last request is the last use, which may be in another minute
	if created == "" || idleCreated == "" || !thisMinute(used) || idle != "" {
		t.Errorf("created %q and %q, used %q and %q", created, idleCreated, used, idle)
	}
	if err := first.server.SaveKeyUses(); err != nil {
		t.Fatal(err)
	}
	if err := first.resolver.Close(); err != nil {
		t.Fatal(err)
	}
	again := newKeyNode(t, data, text, resolver.DiskOptions{})
	uses, err := again.resolver.KeyUses()
	slices.SortFunc(uses, func(a, b records.KeyUse) int { return a.LastUsed.Compare(b.LastUsed) })
	if err != nil || len(uses) != 2 || !uses[0].LastUsed.IsZero() || uses[1].LastUsed.Format("2006-01-02T15:04:05.000000") != used {
		t.Errorf("the ledger has %+v, %v, want %s", uses, err, used)
	}
	if is, _ := again.times("idle"); is != idleCreated {
		t.Errorf("created %s, want %s", is, idleCreated)
	}
	if is, last := again.times("ops"); is != created || last < used {
		t.Errorf("created %s, used %s, want %s, %s", is, last, created, used)
	}
}

// While the ledger refuses, keys work and the list tells less; nothing is lost when it is back.
func TestKeyLastUsedWithoutLedger(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	text, _ := catalog.NewKeyText()
	n := newKeyNode(t, t.TempDir(), text, resolver.DiskOptions{CheckEvery: 5 * time.Millisecond, RetryEvery: 10 * time.Millisecond, Ledger: func(dir string, o ledger.Options) (*ledger.Ledger, error) {
		if broken.Load() {
			return nil, ledger.ErrUnavailable
		}
		return ledger.Open(dir, o)
	}})
	if err := n.server.SaveKeyUses(); err == nil {
		t.Error("the uses were stored without a ledger")
	}
	if created, used := n.times("ops"); created != "" || !thisMinute(used) {
		t.Errorf("created %q, used %q", created, used)
	}
	broken.Store(false)
	testrig.Eventually(t, "the ledger is back", func() bool { return n.server.SaveKeyUses() == nil })
	if created, used := n.times("ops"); created == "" || !thisMinute(used) {
		t.Errorf("created %q, used %q", created, used)
	}
}

// A page of keys has the true meta, and can be sorted by each field.
func TestKeysPaged(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.ask("GET", "/api/platform/keys?page=2&limit=3&order=desc", h.all)
	a.check(t, 200, "")
	var names []string
	for _, row := range a.json["data"].([]any) {
		names = append(names, row.(map[string]any)["name"].(string))
	}
	total := h.resolver.Keys().Len()
	if meta := a.json["meta"].(map[string]any); len(names) != 3 || !slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(b, a) }) || meta["total"] != float64(total) {
		t.Errorf("%s", a.body)
	}
	for _, field := range []string{"name", "id", "expiresAt", "createdAt", "lastUsedAt"} {
		h.ask("GET", "/api/platform/keys?sort="+field, h.all).check(t, 200, "")
	}
	if strings.Contains(string(a.body), "hash") {
		t.Errorf("a hash is told: %s", a.body)
	}
}
