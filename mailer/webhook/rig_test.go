package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/records"
)

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	secret   = []byte("a secret of 24 or more bytes")
	quiet    = slog.New(slog.DiscardHandler)
)

// A book is a ledger that a test can cut off: what an Engine stores from then on is lost, as with a killed process.
type book struct {
	*ledger.Ledger
	cut atomic.Bool
}

func (b *book) EventMarks() (records.EventMarks, <-chan struct{}, any, error) {
	at, changed := b.Ledger.Events()
	return at, changed, b, nil
}

func (b *book) ChangeHooks(changes []records.HookChange) error {
	if b.cut.Load() {
		return errors.New("cut off")
	}
	return b.Ledger.ChangeHooks(changes)
}

// declared are the webhooks of a test.
type declared struct {
	mu      sync.Mutex
	hooks   []webhook.Hook
	unknown bool
	changed chan struct{}
}

func (d *declared) Webhooks() ([]webhook.Hook, <-chan struct{}, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.hooks), d.changed, !d.unknown
}

func (d *declared) set(hooks ...webhook.Hook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hooks, d.unknown = hooks, false
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// A rig is an Engine over a ledger in memory.
type rig struct {
	t     *testing.T
	book  *book
	hooks declared
	clock testrig.Clock
	o     webhook.Options
	*webhook.Engine
	end func() // ends the Engine, and waits for it
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l, err := ledger.Open("", ledger.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, book: &book{Ledger: l}}
	r.o = webhook.Options{Hooks: &r.hooks, Allow: loopback, Version: "1.2.3", Logger: quiet, Clock: &r.clock}
	t.Cleanup(func() {
		if r.end != nil {
			r.end()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start runs an Engine with these webhooks, and waits until it knows them.
func (r *rig) start(hooks ...webhook.Hook) {
	r.t.Helper()
	r.hooks.set(hooks...)
	r.o.Ledger = r.book
	r.Engine = webhook.New(r.o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.end = func() {
		cancel()
		<-done
	}
	active := 0
	for _, h := range hooks {
		if h.Active {
			active++
		}
	}
	r.until("the engine knows the webhooks", func() bool { return len(r.all()) == active })
}

// kill ends the Engine like a killed process: it stores nothing any more.
func (r *rig) kill() {
	r.book.cut.Store(true)
	r.end()
	r.book = &book{Ledger: r.book.Ledger}
}

func (r *rig) until(what string, done func() bool) {
	r.t.Helper()
	testrig.Eventually(r.t, what, done)
}

func (r *rig) all() []webhook.Status {
	r.t.Helper()
	all, _, err := r.Status(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// status returns that of one webhook.
func (r *rig) status(name string) webhook.Status {
	r.t.Helper()
	for _, s := range r.all() {
		if s.Name == name {
			return s
		}
	}
	return webhook.Status{}
}

// idle waits until everything is delivered to a webhook.
func (r *rig) idle(name string) {
	r.t.Helper()
	r.until("everything is delivered to "+name, func() bool {
		at, _ := r.book.Ledger.Events()
		s := r.status(name)
		return s.Name != "" && s.Waiting == 0 && s.Behind == 0 && s.OnWire == 0 && at.Entry > 0
	})
}

// entry appends an entry of a project, whose slug is p and its id.
func (r *rig) entry(project int64, object string) int64 {
	return r.append(catalog.AuditEntry{Action: "domain.update", ProjectID: project, Slug: fmt.Sprint("p", project), Object: object})
}

func (r *rig) append(e catalog.AuditEntry) int64 {
	r.t.Helper()
	if e.Time.IsZero() {
		e.Time = r.clock.Now().UTC().Truncate(time.Microsecond)
	}
	if e.Door == "" {
		e.Door = catalog.DoorFile
	}
	last, err := r.book.AppendAudit([]catalog.AuditEntry{e}, 0, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return last
}

// deliveries lists what is kept of a webhook, the oldest first: event, object, state and number of attempts.
func (r *rig) deliveries(name string) (list []string) {
	r.t.Helper()
	rows, _, err := r.Deliveries(name, records.HookQuery{Page: 1, Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range slices.Backward(rows) {
		list = append(list, fmt.Sprintf("%s %s %s %d", h.Event, h.Object, h.State, len(h.Attempts)))
	}
	return list
}

// hook returns a webhook that wants everything.
func hook(name, url string) webhook.Hook {
	return webhook.Hook{Name: name, URL: url, Secrets: [][]byte{secret}, Wants: func(string) bool { return true },
		EveryProject: true, Active: true, Version: "1"}
}

// A request is one that a receiver got.
type request struct {
	id, object string
	project    int64
	body       []byte
	header     http.Header
	event      string
	data       map[string]any
}

// A receiver answers as a test says, and keeps what it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []request
	answer func(q request, w http.ResponseWriter, n int) // nil: 204
}

func newReceiver(t *testing.T, answer func(q request, w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelError)
	r.Start()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	q := request{id: req.Header.Get("webhook-id"), body: body, header: req.Header}
	var b struct {
		Type string
		Data map[string]any
	}
	if err != nil || json.Unmarshal(body, &b) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.event, q.data = b.Type, b.Data
	q.object, _ = b.Data["object"].(string)
	project, _ := b.Data["projectId"].(float64)
	q.project = int64(project)
	r.mu.Lock()
	r.got = append(r.got, q)
	n, answer := len(r.got), r.answer
	r.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(q, w, n)
}

func (r *receiver) set(answer func(q request, w http.ResponseWriter, n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// objects lists the objects of what it got.
func (r *receiver) objects() string {
	var list []string
	for _, q := range r.all() {
		list = append(list, q.object)
	}
	return strings.Join(list, " ")
}

func status(code int) func(request, http.ResponseWriter, int) {
	return func(_ request, w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

// verify checks a request as Standard Webhooks 1.0 asks receivers to: one of its signatures is that of the secret.
func verify(q request, secret []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(q.header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return err
	}
	if far := now.Sub(time.Unix(seconds, 0)).Abs(); far > 5*time.Minute {
		return fmt.Errorf("the timestamp is %s away", far)
	}
	for _, signed := range strings.Fields(q.header.Get("webhook-signature")) {
		version, text, _ := strings.Cut(signed, ",")
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%d.%s", q.id, seconds, q.body)
		is, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(is, mac.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature is that of the secret")
}

// rawServer answers each connection with f.
func rawServer(t *testing.T, f func(c net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}
