package console

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// oneKey is good, and all who ask have it.
type oneKey struct{}

func (oneKey) Check(text string) (Key, bool) {
	return Key{ID: "person-ada", Allow: catalog.MayRead}, text == "text"
}

func (oneKey) Fail(netip.Addr) time.Duration { return 0 }

// onePerson signs in at once.
type onePerson struct{}

func (onePerson) Buttons() []login.Button { return nil }

func (onePerson) Begin(_ context.Context, s login.Start) (address, cookie string, err error) {
	return s.PublicURL, "", nil
}

func (onePerson) Finish(context.Context, login.Callback) (*login.Person, string, error) {
	return &login.Person{Login: "company", Subject: "ada"}, "", nil
}

// The key of a session at an edge ends with the session, after eight hours at the latest: what comes with it asks for no
// session.
func TestSessionAtEdgeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{}, 10)
		c, err := New(Options{API: http.DefaultTransport, Keys: oneKey{}, SignIn: SignIn{Desk: onePerson{},
			Person: func(*login.Person) (string, func()) { return "text", func() { ended <- struct{}{} } }}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends := func(want int) {
			t.Helper()
			synctest.Wait()
			if len(ended) != want || len(c.sessions.list("")) != 1-want {
				t.Errorf("%d keys have ended, and there are %d sessions", len(ended), len(c.sessions.list("")))
			}
		}
		begin := func() {
			t.Helper()
			if p, _, err := c.FinishAtEdge(t.Context(), login.Callback{}); err != nil || p.KeyText != "text" {
				t.Fatal(p, err)
			}
		}
		begin()
		time.Sleep(sessionTime - time.Second)
		ends(0)
		time.Sleep(time.Second)
		ends(1)
		<-ended

		begin()
		c.EndAtEdge("another")
		c.EndAtEdge("")
		ends(0)
		c.EndAtEdge("text")
		ends(1)
		<-ended
		time.Sleep(sessionTime)
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("a key has ended twice")
		}
	})
}

// What the authority keeps of an edge is an address, and a short one.
func TestAddressOfEdge(t *testing.T) {
	c, err := New(Options{API: http.DefaultTransport, Keys: oneKey{}, SignIn: SignIn{Desk: onePerson{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, bad := range []string{"", "fra1.example", "http://fra1.example", "https://fra1.example/?a", "javascript:alert(1)",
		"https://[fe80::1%" + strings.Repeat("x", 300) + "]"} {
		if address, _, err := c.BeginAtEdge(t.Context(), login.Start{Login: "company", PublicURL: bad}); err == nil {
			t.Errorf("%.40q is taken: %s", bad, address)
		}
	}
	if address, _, err := c.BeginAtEdge(t.Context(), login.Start{PublicURL: "https://fra1.example"}); err != nil || address == "" {
		t.Error(address, err)
	}
}
