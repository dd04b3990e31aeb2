package client

import (
	"context"
	"encoding/json"
	"fingerpost/cmd/testrig"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// TestInOrder holds few results and keeps their order.
func TestInOrder(t *testing.T) {
	made := make(chan int, 1000)
	var used []int
	get := func(_ context.Context, i int) (int, error) { made <- i; return i * i, nil }
	err := InOrder(context.Background(), 4, 1000, get, func(i, v int) error {
		if v != i*i || i != len(used) {
			t.Fatalf("%d came as number %d with %d", i, len(used), v)
		}
		if ahead := len(made) - i; ahead > 4+3 {
			t.Fatalf("%d results are ahead", ahead)
		}
		used = append(used, i)
		return nil
	})
	if err != nil || len(used) != 1000 {
		t.Error(err, len(used))
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = InOrder(ctx, 4, 1000, get2, func(i, _ int) error {
		if i == 10 {
			cancel()
		}
		return nil
	})
	if err != context.Canceled {
		t.Error(err)
	}
}

func get2(context.Context, int) (int, error) { return 0, nil }

// TestRetryAfter reads both forms.
func TestRetryAfter(t *testing.T) {
	if d := retryAfter("2"); d != 2*time.Second {
		t.Error(d)
	}
	if d := retryAfter("99999999"); d != maxRetryPause {
		t.Error(d)
	}
	if d := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); d < 50*time.Minute {
		t.Error(d)
	}
	for _, text := range []string{"", "-1", "soon"} {
		if d := retryAfter(text); d != 0 {
			t.Errorf("%q: %v", text, d)
		}
	}
}

// TestRefusedText keeps what a server says from acting on the terminal.
func TestRefusedText(t *testing.T) {
	e := &Error{Method: "GET", Path: "/x", Status: 400, Message: "a\x1b[2Jb\u202ec"}
	if err := json.Unmarshal([]byte(`[{"Field":"f","Message":"g\u0007"}]`), &e.Details); err != nil {
		t.Fatal(err)
	}
	if got := e.Error(); strings.ContainsAny(got, "\x1b\u202e\a") || !strings.Contains(got, "; f g") {
		t.Errorf("%q", got)
	}
}

// TestProjectBySlugWithoutID takes the id from the list of projects if the answer by slug has none.
func TestProjectBySlugWithoutID(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := `{"name":"Acme","slug":"` + path.Base(r.URL.Path) + `"}`
		if r.URL.Path == projectsPath {
			data = `[{"id":7,"slug":"globex"},{"id":"101","slug":"acme"}]`
		}
		fmt.Fprintf(w, `{"success":true,"data":%s}`, data)
	}))
	defer server.Close()
	c := New(Options{URL: server.URL, Key: "k", Timeout: testrig.Patience})
	if p, err := c.ProjectBySlug(t.Context(), "acme"); err != nil || p.ID != 101 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.ProjectBySlug(t.Context(), "initech"); err == nil {
		t.Errorf("a project that is not in the list is %+v", p)
	}
}

// TestEdit: an edit says under which conditions it is made, and for whom. Reads of what it is made on, and no others,
// show the proposal.
func TestEdit(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.RequestURI
		for _, name := range []string{"If-Match", "If-None-Match", "X-Change-Message", "X-Propose", "X-Actor"} {
			if v := r.Header.Get(name); v != "" {
				line += ", " + name + " " + v
			}
		}
		got = append(got, line)
		w.Header().Set("X-Commit", "c0ffee")
		w.Header().Set("Location", projectsPath+"/12")
		fmt.Fprint(w, `{"success":true,"data":{"diff":"d","branch":"b","key":"k"}}`)
	}))
	defer server.Close()
	c := New(Options{URL: server.URL, Key: "k", Timeout: testrig.Patience, Actor: "Ada <a@b>", Proposal: "p"})
	e := &Edit{Object: Object{Kind: catalog.KindProject, Project: 7}, Verb: Save, Fields: map[string]any{"name": "N"},
		IfMatch: `"e"`, Message: "m", Proposal: "p"}
	if d, err := c.Try(t.Context(), e); err != nil || d.Diff != "d" {
		t.Errorf("%+v, %v", d, err)
	}
	if m, err := c.Make(t.Context(), e); err != nil || m != (Made{Project: 12, Commit: "c0ffee", Branch: "b"}) {
		t.Errorf("%+v, %v", m, err)
	}
	made := &Edit{Object: Object{Kind: catalog.KindTemplate, Project: 7}, Verb: Create, IfNew: true}
	rotated := &Edit{Object: Object{Kind: catalog.KindKey, Key: "a/b"}, Verb: Rotate}
	for _, e := range []*Edit{made, rotated} {
		if _, err := c.Make(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	if s, err := c.State(t.Context(), Object{Kind: catalog.KindDomain, Project: 7, ID: 8}); err != nil || s.Shared {
		t.Errorf("%+v, %v", s, err)
	}
	_, _ = c.ResolveFlat(t.Context(), "a.example")
	want := []string{
		`PUT /api/platform/projects/7?dryRun=1, If-Match "e", X-Change-Message m, X-Propose p, X-Actor Ada <a@b>`,
		`PUT /api/platform/projects/7, If-Match "e", X-Change-Message m, X-Propose p, X-Actor Ada <a@b>`,
		`POST /api/mail/projects/7/templates, If-None-Match *, X-Actor Ada <a@b>`,
		`POST /api/platform/keys/a%2Fb/rotate, X-Actor Ada <a@b>`,
		`GET /api/platform/projects/7/domains/8, X-Propose p`,
		`GET /api/platform/projects/resolve?form=flat&domain=a.example`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestOnce: a client that asks once does not ask again.
func TestOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := New(Options{URL: server.URL, Key: "k", Timeout: testrig.Patience, Once: true}).Keys(t.Context())
	if !Status(err, http.StatusServiceUnavailable) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
