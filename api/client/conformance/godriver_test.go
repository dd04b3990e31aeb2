package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"fingerpost/api/client/tenant"
	"fingerpost/cmd/testrig"
)

// driverVariable makes this program the driver of package tenant.
const driverVariable = "FINGERPOST_TENANT_DRIVER"

// A request is a line of the runner. Times are in milliseconds.
type request struct {
	ID int64
	Do string

	URL, Key, File          string
	Fresh, MaxStale         int64
	MaxEntries, MaxNegative int
	Warm                    []string

	Host    string
	Timeout int64
	By      int64
}

// A goDriver has at most one open cache.
type goDriver struct {
	clock *testrig.Clock

	mu      sync.Mutex // guards what follows
	out     *json.Encoder
	cache   *tenant.Cache
	changes []string
}

// drive is the driver of package tenant: one JSON object a line on standard input, answers with the same id on standard
// output, perhaps in another order. The runner starts its own program for it, see driverVariable.
func drive() {
	d := &goDriver{clock: &testrig.Clock{}, out: json.NewEncoder(os.Stdout), changes: []string{}}
	var calls sync.WaitGroup
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			d.answer(0, object{"error": err.Error()})
			continue
		}
		switch r.Do {
		case "lookup", "ready": // they wait
			calls.Go(func() { d.answer(r.ID, d.do(&r)) })
		default:
			d.answer(r.ID, d.do(&r))
		}
	}
	d.close()
	calls.Wait()
}

func (d *goDriver) answer(id int64, o object) {
	o["id"] = id
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.out.Encode(o)
}

func (d *goDriver) do(r *request) object {
	if r.Do == "open" {
		return d.open(r)
	}
	if r.Do == "advance" {
		d.clock.Advance(time.Duration(r.By) * time.Millisecond)
		return object{"ok": true}
	}
	d.mu.Lock()
	cache := d.cache
	d.mu.Unlock()
	if cache == nil {
		return object{"error": "not open"}
	}
	ctx := context.Background()
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Timeout)*time.Millisecond)
		defer cancel()
	}
	switch r.Do {
	case "lookup":
		t, err := cache.Lookup(ctx, r.Host)
		if err != nil {
			return object{"error": word(err), "text": err.Error()}
		}
		return object{"tenant": object{"id": t.ID, "uuid": t.UUID, "slug": t.Slug, "name": t.Name, "status": t.Status,
			"domain": t.Domain,
			"labels": t.Labels, "etag": t.ETag, "asOf": timeText(t.AsOf), "stale": t.Stale}}
	case "ready":
		if err := cache.Ready(ctx); err != nil {
			return object{"error": err.Error()}
		}
		return object{"ok": true}
	case "status":
		s := cache.Status()
		lastError := ""
		if s.LastError != nil {
			lastError = s.LastError.Error()
		}
		return object{"status": object{"connected": s.Connected, "position": s.Position, "entries": s.Entries,
			"negatives":  s.Negatives,
			"oldestAsOf": timeText(s.OldestAsOf), "lastError": lastError, "lastContact": timeText(s.LastContact)}}
	case "changes":
		d.mu.Lock()
		defer d.mu.Unlock()
		hosts := d.changes
		d.changes = []string{}
		return object{"hosts": hosts}
	case "close":
		if err := d.close(); err != nil {
			return object{"ok": true, "text": err.Error()}
		}
		return object{"ok": true}
	}
	return object{"error": "unknown request " + r.Do}
}

func (d *goDriver) open(r *request) object {
	_ = d.close() // a file has one writer
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	cache, err := tenant.Open(tenant.Options{
		URL: r.URL, Key: r.Key, File: r.File, Warm: r.Warm, Fresh: ms(r.Fresh), MaxStale: ms(r.MaxStale),
		MaxEntries: r.MaxEntries, MaxNegative: r.MaxNegative,
		OnChange: func(hosts []string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.changes = append(d.changes, hosts...)
		},
		Transport: testrig.ClockTransport{RoundTripper: http.DefaultTransport.(*http.Transport).Clone(), Clock: d.clock},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return object{"error": err.Error()}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cache, d.changes = cache, []string{}
	return object{"ok": true}
}

func (d *goDriver) close() error {
	d.mu.Lock()
	cache := d.cache
	d.cache = nil
	d.mu.Unlock()
	if cache == nil {
		return nil
	}
	return cache.Close()
}

// timeText is a time as in RFC 3339; "" if it is zero.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// word is the contract's word for an error of Lookup.
func word(err error) string {
	for is, word := range map[error]string{
		tenant.ErrUnknown: "unknown", tenant.ErrInvalid: "invalid", tenant.ErrNotVerified: "notVerified",
		tenant.ErrSuspended: "suspended",
		tenant.ErrForbidden: "forbidden", tenant.ErrUnauthorized: "unauthorized", tenant.ErrUnavailable: "unavailable",
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	return "cancelled"
}
