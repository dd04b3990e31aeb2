package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster/natsd"
)

// existing starts a NATS server of somebody else, without keys.
func existing(t *testing.T, change func(*server.Options)) (url string, stop func()) {
	t.Helper()
	s := existingServer(t, change)
	return s.ClientURL(), s.Shutdown
}

func existingOptions(t *testing.T) *server.Options {
	return &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		MaxPayload: natsd.MaxPayload}
}

func existingServer(t *testing.T, change func(*server.Options)) *server.Server {
	t.Helper()
	o := existingOptions(t)
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(testrig.Patience) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(s.Shutdown)
	return s
}

// TestSmallPayload: a server into whose messages not every file fits is refused at the start, with the line to add.
func TestSmallPayload(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	url, _ := existing(t, func(o *server.Options) { o.MaxPayload = 1 << 20 }) // its default
	a := NewAuthority(AuthorityOptions{Connection: Connection{URLs: []string{url}}, Cluster: "test", Tree: newTree(), Logger: quiet()})
	err := a.Claim(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1048576 bytes") || !strings.Contains(err.Error(), "max_payload: 8MB") {
		t.Errorf("%v", err)
	}
}

// TestExistingServer: the largest files go through and away again; and without the server an authority stops writing
// before its lease ends, since another may take it.
func TestExistingServer(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	url, stop := existing(t, func(*server.Options) {})
	connection := Connection{URLs: []string{url}}
	r := &rig{t: t, dir: t.TempDir(), tree: newTree()}
	r.tree.commit(map[string]string{"acme.hcl": "one", "mail/large.html": noise(1 << 20)})
	r.startAuthority(AuthorityOptions{Connection: connection, TTL: 2 * time.Second})
	e := startEdge(t, FollowerOptions{Edge: "fra1", Connection: connection}, newTree())
	r.reaches(e)
	r.tree.commit(map[string]string{"mail/large.html": noise(100 << 10)})
	r.reaches(e)
	r.tree.commit(map[string]string{"mail/large.html": "", "b.hcl": "b"})
	r.reaches(e)
	fresh := startEdge(t, FollowerOptions{Edge: "fra1", Connection: connection}, newTree())
	r.reaches(fresh)
	if err := r.authority.MayWrite(); err != nil {
		t.Error(err)
	}
	stop()
	testrig.Eventually(t, "the authority refuses to write", func() bool { return r.authority.MayWrite() != nil })
	if _, err := e.tree.TreeFile("b.hcl"); err != nil {
		t.Error(err)
	}
}

// noise returns n bytes that cannot be packed.
func noise(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return string(b)
}

// A deafConn is a connection whose other end may stop to hear. It tells on lost when something is.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
	lost chan struct{}
}

func (c deafConn) Write(b []byte) (int, error) {
	if !c.deaf.Load() {
		return c.Conn.Write(b)
	}
	select {
	case c.lost <- struct{}{}:
	default:
	}
	return len(b), nil
}

type dialFunc func(network, address string) (net.Conn, error)

func (d dialFunc) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// TestLostQuestionEndsWithItsConnection: an answer does not come on the next connection, so nobody waits for it there.
func TestLostQuestionEndsWithItsConnection(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	url, _ := existing(t, func(*server.Options) {})
	var deaf atomic.Bool
	lost, dialed := make(chan struct{}, 1), make(chan net.Conn, 10)
	c := Connection{URLs: []string{url}, dialer: dialFunc(func(network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		if err == nil {
			dialed <- conn
		}
		return deafConn{conn, &deaf, lost}, err
	})}
	nc, err := c.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b, err := newBucket(nc, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func() error{
		"a read of one":       func() error { _, err := b.read(t.Context(), 1, 1, func(record) error { return nil }); return err },
		"a read of many":      func() error { _, err := b.read(t.Context(), 1, 1000, func(record) error { return nil }); return err },
		"a look at the state": func() error { _, err := b.state(t.Context()); return err },
	} {
		err := nats.ErrReconnectBufExceeded
		// What is lost first may be the subscription for the answer, and the connection gone before the question: then it
		// was not asked.
		for errors.Is(err, nats.ErrReconnectBufExceeded) {
			deaf.Store(true)
			ended := make(chan error, 1)
			go func() { ended <- ask() }()
			<-lost
			deaf.Store(false)
			(<-dialed).Close()
			err = <-ended
			testrig.Eventually(t, "it is connected again", nc.IsConnected)
		}
		if !errors.Is(err, nats.ErrDisconnected) {
			t.Errorf("%s ends with %v", what, err)
		}
		if err := ask(); err != nil {
			t.Errorf("%s on the next connection: %v", what, err)
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	for _, v := range []string{"2.15.1", "2.9.99", "1.99.0", "2.15.1-RC.3"} {
		if !older(v, MinServer) {
			t.Errorf("%s counts as new enough", v)
		}
	}
	for _, v := range []string{MinServer, "2.15.10", "2.16.0-preview.1", "3.0.0"} {
		if older(v, MinServer) {
			t.Errorf("%s counts as too old", v)
		}
	}
	// A write that is refused for it names both versions.
	a := &Authority{progress: progress{problem: fmt.Errorf("claim: %w", &VersionError{Server: "n1", Have: "2.9.7"})}, now: time.Now}
	if err := a.MayWrite(); err == nil || !strings.Contains(err.Error(), "2.9.7") || !strings.Contains(err.Error(), MinServer) {
		t.Error(err)
	}
	if !strings.HasPrefix(server.VERSION, MinServer) {
		t.Errorf("the tests run against %s, not %s", server.VERSION, MinServer)
	}
}
