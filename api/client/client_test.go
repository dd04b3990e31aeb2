package client

import (
	"context"
	"encoding/json"
	"fingerpost/cmd/testrig"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"
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
