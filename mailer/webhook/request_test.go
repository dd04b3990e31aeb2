package webhook_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// TestRequest: a kept delivery has the request as its receiver got it, while what it tells of is kept.
func TestRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Commits = true
	got := newReceiver(t, status(http.StatusInternalServerError))
	r.start(hook("crm", got.URL))
	r.append(catalog.AuditEntry{Action: "domain.update", ProjectID: 1, Slug: "acme", Object: "a", RequestID: "r1", Generation: 3, Door: catalog.DoorAPI,
		Changes: []catalog.FieldChange{{Field: "active", Before: false, After: true}}})
	r.until("it waits for its commit", func() bool { return r.status("crm").Waiting == 1 })
	r.clock.Advance(3 * time.Second)
	r.until("the first attempt has failed", func() bool { return r.status("crm").Failing == 1 })
	if s := r.status("crm"); s.FailingSince.IsZero() {
		t.Errorf("the status is %+v", s)
	}
	late := []catalog.WriteCommit{{RequestID: "r1", Generation: 3, Commit: "abc"}} // the body stays as it was sent
	if err := r.book.Committed(late); err != nil {
		t.Fatal(err)
	}
	got.set(nil)
	r.clock.Advance(10 * time.Second)
	r.idle("crm")
	requests := got.all()
	is, err := r.Request("crm", requests[0].id)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range requests {
		if !bytes.Equal(is.Body, q.body) {
			t.Errorf("the body is %s, and was sent as %s", is.Body, q.body)
		}
		for name := range is.Header {
			if is.Header.Get(name) != q.header.Get(name) {
				t.Errorf("%s is %q, and was sent as %q", name, is.Header.Get(name), q.header.Get(name))
			}
		}
	}
	if len(is.Header) != 3 || len(is.Attempts) != 2 || is.State != records.HookDelivered {
		t.Errorf("%+v", is)
	}
	for _, name := range []string{"crm", "nobody"} {
		if _, err := r.Request(name, is.ID+"x"); !catalog.IsNotFound(err) {
			t.Errorf("a delivery that is not kept: %v", err)
		}
	}
	if err := r.book.PruneAudit(t.Context(), r.clock.Now().AddDate(0, 0, 2), func(int64) int { return 1 }); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Replay(t.Context(), "crm", webhook.Replay{ID: is.ID}); n != 0 || !catalog.IsNotFound(err) {
		t.Errorf("once its entry is gone it is sent again: %d, %v", n, err)
	}
	if is, err = r.Request("crm", is.ID); err != nil || is.Body != nil || len(is.Attempts) != 2 {
		t.Errorf("once its entry is gone: %v, %+v", err, is)
	}
}
