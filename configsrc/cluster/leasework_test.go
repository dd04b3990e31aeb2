package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// leaseWork is what keeps an authority busy. It prepares the authority and returns what goes on until ctx ends.
type leaseWork struct {
	name  string
	begin func(t *testing.T, r *rig, o *AuthorityOptions) (goOn func(ctx context.Context))
}

// changeEvery commits a change again and again.
func changeEvery(r *rig, d time.Duration, files func(i int) map[string]string) func(context.Context) {
	return func(ctx context.Context) {
		for i := 0; pause(ctx, d) == nil; i++ {
			r.tree.commit(files(i))
		}
	}
}

func oneFile(i int) map[string]string { return map[string]string{"acme.hcl": fmt.Sprint("change ", i)} }

var leaseWorks = []leaseWork{
	{"changes", func(_ *testing.T, r *rig, _ *AuthorityOptions) func(context.Context) {
		return changeEvery(r, 100*time.Millisecond, oneFile)
	}},
	{"many files", func(t *testing.T, r *rig, _ *AuthorityOptions) func(context.Context) {
		n := testrig.Size(t, 100_000, 2_000)
		return changeEvery(r, 100*time.Millisecond, func(i int) map[string]string {
			files := map[string]string{}
			for k := range n {
				files[fmt.Sprintf("p%d.hcl", k)] = fmt.Sprint("change ", i)
			}
			return files
		})
	}},
	{"a tree that does not answer", func(_ *testing.T, r *rig, o *AuthorityOptions) func(context.Context) {
		x := blockedTree{r.tree, make(chan struct{})}
		o.Tree = x
		return func(ctx context.Context) {
			<-ctx.Done()
			close(x.release)
		}
	}},
	{"a slow network", func(_ *testing.T, r *rig, o *AuthorityOptions) func(context.Context) {
		o.Connection = o.Connection.slower(200 * time.Millisecond)
		return changeEvery(r, 100*time.Millisecond, oneFile)
	}},
	{"a narrow network", func(_ *testing.T, r *rig, o *AuthorityOptions) func(context.Context) {
		o.Connection = o.Connection.narrower(256 << 10)
		noise := noise(1 << 20)
		return changeEvery(r, 100*time.Millisecond, func(i int) map[string]string {
			return map[string]string{"large.html": fmt.Sprint(i, noise)}
		})
	}},
}

// TestLeaseIsHeldAtWork: no work keeps an authority from renewing its lease. It may write all the time, and another one
// that waits for the end of the lease does not get it.
func TestLeaseIsHeldAtWork(t *testing.T) {
	testrig.Thorough(t)
	for _, existingServer := range []bool{false, true} {
		for _, w := range leaseWorks {
			t.Run(fmt.Sprintf("%s/existing=%t", w.name, existingServer), func(t *testing.T) {
				r := newRig(t)
				r.stop()
				connection := ConnectionTo(r.supervisor)
				if existingServer {
					url, _ := existing(t, func(*server.Options) {})
					connection = Connection{URLs: []string{url}}
				}
				holdAtWork(t, r, w, connection)
			})
		}
	}
}

func holdAtWork(t *testing.T, r *rig, w leaseWork, connection Connection) {
	ttl := testrig.Size(t, DefaultTTL, 4*time.Second)
	lasts := testrig.Size(t, 3*DefaultTTL, 6*time.Second)
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	o := AuthorityOptions{Connection: connection, TTL: ttl}
	goOn := w.begin(t, r, &o)
	r.startAuthority(o)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	working := run(t, func(ctx context.Context) error { goOn(ctx); return nil })
	defer working()
	second := r.newAuthority(AuthorityOptions{Connection: connection, Holder: "there:/data", Tree: newTree(), TTL: ttl, TakeOver: true})
	taken := make(chan error, 1)
	go func() { taken <- second.Claim(ctx) }()
	for {
		select {
		case err := <-taken:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the claim of another authority ended with %v", err)
			}
			if s := r.authority.Status(nil); s.Lost {
				t.Errorf("it has lost its lease: %s", s.Problem)
			}
			return
		case <-time.After(5 * time.Millisecond):
			if err := r.authority.MayWrite(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A blockedTree is a tree that is read for a long time.
type blockedTree struct {
	*tree
	release chan struct{}
}

func (x blockedTree) Tree(yield func(string, []byte) bool) error {
	<-x.release
	return x.tree.Tree(yield)
}

func (x blockedTree) TreeFile(path string) (catalog.TreeFile, error) {
	<-x.release
	return x.tree.TreeFile(path)
}

// slower returns a Connection whose messages take d in each direction.
func (c Connection) slower(d time.Duration) Connection {
	return c.through(func(part []byte, at time.Time) time.Time { return at.Add(d) })
}

// narrower returns a Connection that sends and receives n bytes a second.
func (c Connection) narrower(n int) Connection {
	return c.through(func(part []byte, _ time.Time) time.Time {
		return time.Now().Add(time.Duration(len(part)) * time.Second / time.Duration(n))
	})
}

// through returns a Connection over a network that delivers what it gets at the time that due says.
func (c Connection) through(due func(part []byte, at time.Time) time.Time) Connection {
	dial := net.Dial
	if c.dialer != nil {
		dial = c.dialer.Dial
	}
	c.dialer = dialFunc(func(network, address string) (net.Conn, error) {
		far, err := dial(network, address)
		if err != nil {
			return nil, err
		}
		near, inner := net.Pipe()
		go deliver(far, inner, due)
		go deliver(inner, far, due)
		return near, nil
	})
	return c
}

// deliver carries what from sends, until one of both ends.
func deliver(to, from net.Conn, due func([]byte, time.Time) time.Time) {
	type part struct {
		data []byte
		at   time.Time
	}
	parts := make(chan part, 1024)
	go func() {
		defer close(parts)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			parts <- part{b[:n], time.Now()}
		}
	}()
	for p := range parts {
		<-time.After(time.Until(due(p.data, p.at)))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range parts {
	}
}
