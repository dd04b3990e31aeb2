package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fingerpost/cmd/testrig"
)

// A reachRig is a cluster with the edges fra1 and ams1, and what the key of fra1 must not reach.
type reachRig struct {
	*rig
	b      *bucket    // of a connection that may do everything in the authority's account
	key    *nats.Conn // with the key of fra1
	other  *nats.Conn // with the key of ams1
	shop   *bucket    // another product's stream, ORDERS, on the same server
	server *server.Server
	mu     sync.Mutex // guards the fields below
	spied  []string   // what was published in the authority's account, and must not have been
	leaked []string   // what ams1 has got, and fra1 on the subject that it names as its own
}

// reachSubjects are where fra1 publishes. allowed ones are what it needs.
func reachSubjects() (allowed, refused []string) {
	s := stream("test")
	allowed = []string{
		"$JS.API.STREAM.INFO." + s, directGet("test"), beatSubject("test", "fra1"), forwardSubject("test", "fra1"),
	}
	refused = []string{
		"$KV." + Bucket("test") + ".lease", "$KV." + Bucket("test") + ".f.acme=2Ehcl",
		"$JS.API.STREAM.DELETE." + s, "$JS.API.STREAM.PURGE." + s, "$JS.API.STREAM.UPDATE." + s,
		"$JS.API.STREAM.MSG.DELETE." + s, "$JS.API.STREAM.MSG.GET." + s, "$JS.API.STREAM.SNAPSHOT." + s,
		"$JS.API.STREAM.NAMES", "$JS.API.STREAM.CREATE.x", "$JS.API.INFO",
		"$JS.API.CONSUMER.CREATE." + s, "$JS.API.STREAM.INFO.KV_other", "$JS.API.STREAM.DELETE.ORDERS",
		beatSubject("test", "ams1"), forwardSubject("test", "ams1"), newsSubject("test"), "orders.new",
		inboxOf("ams1") + ".x", authorityInbox + ".x", "$SYS.REQ.SERVER.PING", "_R_.x",
	}
	return allowed, refused
}

// reachReplies are the reply subjects that fra1 names. The first is its own.
func reachReplies() []string {
	s := stream("test")
	return []string{
		inboxOf("fra1") + ".x", inboxOf("ams1") + ".x", authorityInbox + ".x",
		"$JS.API.STREAM.DELETE." + s, "$JS.API.STREAM.PURGE." + s, "$JS.API.STREAM.MSG.DELETE." + s,
		"$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.DELETE.ORDERS", "$JS.API.STREAM.PURGE.ORDERS", "$JS.API.CONSUMER.DELETE.ORDERS.worker",
		"$KV." + Bucket("test") + ".lease", "$KV." + Bucket("test") + ".marker", "$KV." + Bucket("test") + ".f.acme=2Ehcl",
		beatSubject("test", "ams1"), beatSubject("test", "fra1"), forwardSubject("test", "ams1"),
		forwardSubject("test", "fra1"), newsSubject("test"), "orders.new", "$JS.ACK.ORDERS.worker.1.1.1.1.0",
		directGet("test"), "$SYS.REQ.SERVER.PING",
	}
}

// reachMessages are what it publishes: nothing, JSON, questions that have an empty message as the answer, and a request to
// trace the message to the reply subject.
func reachMessages(subject, reply string) (messages []*nats.Msg) {
	gone, _ := json.Marshal(getRequest{LastFor: "$KV." + Bucket("test") + ".f.gone=2Ehcl"})
	all, _ := json.Marshal(getRequest{Seq: 1, NextFor: "$KV." + Bucket("test") + ".>", Batch: 10})
	for _, payload := range [][]byte{nil, []byte("{}"), gone, all} {
		messages = append(messages, &nats.Msg{Subject: subject, Reply: reply, Data: payload})
	}
	return append(messages, &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Trace-Dest": []string{reply}}})
}

// TestEdgeKeyReachesNothingElse: whatever a key of an edge publishes, and whatever reply subject it names, nothing
// happens to the bucket, to other edges and to streams of others.
func TestEdgeKeyReachesNothingElse(t *testing.T) {
	testrig.Thorough(t)
	for _, where := range []string{"built-in", "existing"} {
		t.Run(where, func(t *testing.T) {
			r := newReachRig(t, where == "existing")
			allowed, refused := reachSubjects()
			r.answers(allowed)
			before, tried := r.state(), 0
			for _, subject := range slices.Concat(refused, allowed) {
				for i, reply := range reachReplies() {
					if i == 0 && slices.Contains(allowed, subject) {
						continue // that is what it may do
					}
					for _, m := range reachMessages(subject, reply) {
						tried++
						r.publish(m)
						if after := r.state(); after != before {
							t.Fatalf("%s with the reply subject %q, %v and %q:\n%s, before\n%s", subject, m.Reply, m.Header, m.Data, after, before)
						}
					}
				}
			}
			r.answers(allowed) // all before it are done
			if after := r.state(); after != before {
				t.Errorf("in the end:\n%s, before\n%s", after, before)
			}
			t.Logf("%d publishes", tried)
		})
	}
}

// answers has the allowed requests answered, in an inbox of their own.
func (r *reachRig) answers(allowed []string) {
	r.t.Helper()
	for _, subject := range allowed {
		if subject == beatSubject("test", "fra1") {
			continue // it has no answer
		}
		m, err := r.key.Request(subject, nil, testrig.Patience)
		if err != nil || strings.Contains(string(m.Data), `"error"`) {
			r.t.Errorf("%s: %s, %v", subject, m.Data, err)
		}
	}
}

func newReachRig(t *testing.T, existingServer bool) *reachRig {
	r := &reachRig{rig: newRig(t, "fra1", "ams1")}
	r.stop()
	connection, follow := ConnectionTo(r.supervisor), []string{"nats://" + r.supervisor.Addr()}
	if existingServer {
		var url string
		connection, url = r.existingWithAccounts(t)
		follow = []string{url}
	}
	r.tree.commit(map[string]string{"acme.hcl": "one", "gone.hcl": "gone"})
	r.startAuthority(AuthorityOptions{Connection: connection, TTL: time.Hour, Answer: func(_ context.Context, request []byte) ([]byte, error) {
		return nil, nil // the answer that does most as a request
	}})
	published := func() bool { return r.authority.Status(nil).Published == r.tree.Position().String() }
	testrig.Eventually(t, "the tree is published", published)
	r.tree.commit(map[string]string{"gone.hcl": ""})
	testrig.Eventually(t, "the removal is published", published)
	r.b = connectedAs(t, connection, "_INBOX_test")
	edge := func(name string) *nats.Conn {
		return connectedAs(t, Connection{URLs: follow, KeyFile: r.seeds[name]}, inboxOf(name)).nc
	}
	r.key, r.other = edge("fra1"), edge("ams1")
	if r.shop == nil {
		r.shop = r.b
	}
	r.addShop(t)
	r.spy(t)
	return r
}

func connectedAs(t *testing.T, c Connection, inbox string) *bucket {
	t.Helper()
	c.inbox = inbox
	b, err := c.bucket("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.nc.Close)
	testrig.Eventually(t, "it is connected", b.nc.IsConnected)
	return b
}

// existingWithAccounts starts a server as README.md has it, with another product on it.
func (r *reachRig) existingWithAccounts(t *testing.T) (Connection, string) {
	authority, authorityKey := newKey(t)
	shop, shopKey := newKey(t)
	r.server = existingServer(t, func(o *server.Options) {
		accounts := documentedAccounts(t, authorityKey, r.publics)
		must(t, o.ProcessConfigString(strings.Replace(accounts, "accounts {", "accounts { shop { jetstream: enabled, users: [ { nkey: "+shopKey+" } ] }", 1)))
	})
	url := r.server.ClientURL()
	r.shop = connectedAs(t, Connection{URLs: []string{url}, KeyFile: shop}, "_INBOX_shop")
	return Connection{URLs: []string{url}, Creds: authority}, url
}

// documentedAccounts is the configuration that README.md has for an existing server, for the cluster and edges of a test.
func documentedAccounts(t testing.TB, authority string, edges map[string]string) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	must(t, err)
	block := regexp.MustCompile("(?s)```conf\n(.*?)```").FindSubmatch(readme)
	edge := regexp.MustCompile(`(?s)  fingerpost_prod_fra1 \{\n.*?\n  \}\n`)
	if block == nil || !edge.Match(block[1]) {
		t.Fatal("README.md has no accounts with one of an edge")
	}
	return strings.NewReplacer("prod", "test", "UAUTHORITY", authority).Replace(edge.ReplaceAllStringFunc(string(block[1]), func(one string) (all string) {
		for name, key := range edges {
			all += strings.NewReplacer("fra1", name, "UFRA1", key).Replace(one)
		}
		return all
	}))
}

// TestEdgeLeavesNothingBehind: the server keeps nothing of the requests of an edge, once they are answered.
func TestEdgeLeavesNothingBehind(t *testing.T) {
	r := newReachRig(t, true)
	o := FollowerOptions{Edge: "fra1", Connection: Connection{URLs: []string{r.server.ClientURL()}, KeyFile: r.seeds["fra1"]}}
	e := startEdge(t, o, newTree())
	for i := range 20 {
		r.tree.commit(oneFile(i))
		r.reaches(e)
		if _, _, err := e.Forward(t.Context(), "acme", []byte("hello")); err != nil {
			t.Error(err)
		}
	}
	account, err := r.server.LookupAccount("fingerpost_test")
	must(t, err)
	must(t, e.nc.Flush())
	if n := account.NumPendingAllResponses(); n > 5 { // the edge may be asking
		t.Errorf("the server expects %d answers", n)
	}
}

// TestEdgeIsAddedToAnExistingServer: two reloads let a new edge in, as README.md says.
func TestEdgeIsAddedToAnExistingServer(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.stop()
	seed, public := newKey(t)
	dir := t.TempDir()
	configure := func(o *server.Options, edges map[string]string) {
		o.StoreDir = dir
		must(t, o.ProcessConfigString(documentedAccounts(t, public, edges)))
	}
	s := existingServer(t, func(o *server.Options) { configure(o, map[string]string{"fra1": r.publics["fra1"]}) })
	r.tree.commit(oneFile(0))
	r.startAuthority(AuthorityOptions{Connection: Connection{URLs: []string{s.ClientURL()}, Creds: seed}})
	edge := func(name string) *edge {
		c := Connection{URLs: []string{s.ClientURL()}, KeyFile: r.seeds[name]}
		return startEdge(t, FollowerOptions{Edge: name, Connection: c}, newTree())
	}
	fra := edge("fra1")
	r.reaches(fra)
	for range 2 {
		o := existingOptions(t)
		configure(o, r.publics)
		// nats-server reads its options without a lock when it answers a direct get. Listing the connections takes their
		// locks, and so orders what they have answered before the reload.
		if _, err := s.Connz(nil); err != nil {
			t.Error(err)
		}
		must(t, s.ReloadOptions(o))
	}
	r.reaches(edge("ams1"))
	r.tree.commit(oneFile(1))
	r.reaches(fra)
}

// TestAnswersGoToTheOwnInbox: where an operator has given edges permissions in the authority's account, the authority
// answers no request with the reply subject of somebody else.
func TestAnswersGoToTheOwnInbox(t *testing.T) {
	url, _ := existing(t, func(*server.Options) {})
	r := &rig{t: t, dir: t.TempDir(), tree: newTree()}
	connection := Connection{URLs: []string{url}}
	r.startAuthority(AuthorityOptions{Connection: connection, Answer: func(context.Context, []byte) ([]byte, error) { return nil, nil }})
	b := connectedAs(t, connection, inboxOf("fra1"))
	created, err := b.state(t.Context())
	must(t, err)
	for _, reply := range reachReplies()[1:] {
		must(t, b.nc.PublishRequest(forwardSubject("test", "fra1"), reply, nil))
	}
	if _, err := b.nc.Request(forwardSubject("test", "fra1"), nil, testrig.Patience); err != nil {
		t.Error(err)
	}
	after, err := b.state(t.Context())
	if err != nil || !after.created.Equal(created.created) || r.authority.Stats().Forwarded != 1 {
		t.Errorf("%d requests were taken; the bucket is of %v, before %v (%v)", r.authority.Stats().Forwarded, after.created, created.created, err)
	}
}

// TestEdgesComeAndGo: an edge goes on, and its requests are answered, while others are let in and revoked.
func TestEdgesComeAndGo(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.stop()
	r.startAuthority(AuthorityOptions{Answer: func(_ context.Context, request []byte) ([]byte, error) { return request, nil }})
	r.tree.commit(oneFile(0))
	e := r.edge("fra1")
	r.reaches(e)
	for i := range testrig.Size(t, 100, 10) {
		in := i%2 == 0
		edges := map[string]string{"fra1": r.publics["fra1"]}
		if in {
			edges["ams1"] = r.publics["ams1"]
		}
		must(t, r.supervisor.SetEdges(edges))
		r.tree.commit(oneFile(i))
		// The server may close a connection when it takes over the new list. A request under way is then told so.
		testrig.Eventually(t, "a request is answered", func() bool {
			got, _, err := e.Forward(t.Context(), "acme", []byte("hello"))
			if err == nil && string(got) != "hello" || err != nil && !errors.Is(err, ErrAway) && !errors.Is(err, ErrNoAnswer) {
				t.Fatalf("the answer is %q, %v", got, err)
			}
			return err == nil
		})
		r.reaches(e)
		if in {
			r.reaches(r.edge("ams1"))
		}
	}
	// A read that the server answered while it took over the list is a problem until the next one.
	testrig.Eventually(t, "the edge is connected and without a problem", func() bool {
		s := e.Status()
		return s.Connected && s.Problem == ""
	})
}

// addShop makes the other product's stream, with a message that its consumer has taken and not acknowledged.
func (r *reachRig) addShop(t *testing.T) {
	ctx := t.Context()
	s, err := r.shop.js.CreateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	must(t, err)
	_, err = r.shop.js.Publish(ctx, "orders.new", []byte("order"))
	must(t, err)
	c, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour})
	must(t, err)
	_, err = c.Next(jetstream.FetchMaxWait(testrig.Patience))
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spy listens in the authority's account to all that is not the test's own, as ams1 to all that it may hear, and as fra1
// for answers to what it may not ask.
func (r *reachRig) spy(t *testing.T) {
	allowed, _ := reachSubjects()
	_, err := r.b.nc.Subscribe(">", func(m *nats.Msg) {
		first, _, _ := strings.Cut(m.Subject, ".")
		if slices.Contains(allowed, m.Subject) || slices.Contains([]string{"_R_", "_INBOX_test", inboxOf("fra1"), "$JS"}, first) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.spied = append(r.spied, m.Subject)
	})
	must(t, err)
	leaked := func(m *nats.Msg) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leaked = append(r.leaked, m.Subject)
	}
	for _, subject := range []string{inboxOf("ams1") + ".>", newsSubject("test")} {
		_, err = r.other.Subscribe(subject, leaked)
		must(t, err)
	}
	_, err = r.key.Subscribe(reachReplies()[0], leaked)
	must(t, err)
	must(t, r.b.nc.Flush())
	must(t, r.other.Flush())
}

// publish publishes with the key of fra1. The server has done what follows from it, as far as that is done in order.
func (r *reachRig) publish(m *nats.Msg) {
	must(r.t, r.key.PublishMsg(m))
	must(r.t, r.key.Flush())
	must(r.t, r.b.nc.Flush())
	must(r.t, r.other.Flush())
}

// state is everything that must not change, as text.
func (r *reachRig) state() string {
	ctx := r.t.Context()
	st, err := r.b.state(ctx)
	if err != nil {
		return "the bucket: " + err.Error()
	}
	s, err := r.shop.js.Stream(ctx, "ORDERS")
	if err != nil {
		return "the orders: " + err.Error()
	}
	c, err := s.Consumer(ctx, "worker")
	if err != nil {
		return "the orders' consumer: " + err.Error()
	}
	all, err := r.b.js.AccountInfo(ctx)
	if err != nil {
		return "the account: " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.authority.edges.mu.Lock()
	defer r.authority.edges.mu.Unlock()
	return fmt.Sprintf("%d streams and %d consumers; bucket of %v, ends at %d; orders of %v with %d, %d not acknowledged; published %v, heard %v, a heartbeat of ams1 %t",
		all.Streams, all.Consumers, st.created, st.last, s.CachedInfo().Created, s.CachedInfo().State.LastSeq, c.CachedInfo().NumAckPending, r.spied, r.leaked, r.authority.edges.known["ams1"] != nil)
}
