package inbound_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/mailer/inbound"
	"fingerpost/resolver/catalog"
)

// TestAdmit: the secret lets in, as Basic and as Bearer; everything else gets one of two answers, which are the same for a
// name that exists and one that does not.
func TestAdmit(t *testing.T) {
	t.Parallel()
	rotated := block("ses", catalog.InboundSES, "acme")
	rotated.Secrets = append(rotated.Secrets, catalog.Secret{Source: catalog.SecretPlain, Ref: "older-secret-of-ses"})
	r := newRig(t, nil, rotated, block("relay", catalog.InboundJSON, "acme"))
	values := func(list ...string) (out [][]byte) {
		for _, v := range list {
			out = append(out, []byte(v))
		}
		return out
	}
	f := func(authorization [][]byte, want error) {
		t.Helper()
		for _, name := range []string{"ses", "nobody", ""} {
			_, err := r.Admit(name, authorization)
			if name != "ses" && want == nil {
				continue
			}
			if !errors.Is(err, want) {
				t.Errorf("%s, %q: %v, want %v", name, authorization, err, want)
			}
		}
	}
	basicOf := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, good := range []string{"Bearer " + secret, "bearer  " + secret + " ", "Basic " + basicOf(":"+secret), "BASIC " + basicOf("a:"+secret), "Bearer older-secret-of-ses"} {
		f(values(good), nil)
	}
	for _, bad := range []string{"Bearer " + secret + "x", "Bearer " + secret[1:], "Basic " + basicOf("a:"), "Basic " + basicOf("a:b:"+secret), "Bearer " + strings.Repeat("x", 10_000)} {
		f(values(bad), inbound.ErrWrongSecret)
	}
	for _, none := range []string{"", "Bearer", "Bearer ", "Basic " + secret, "Basic " + basicOf(secret), "Digest " + secret, secret} {
		f(values(none), inbound.ErrNoSecret)
	}
	f(nil, inbound.ErrNoSecret)
	f(values("Bearer "+secret, "Bearer "+secret), inbound.ErrNoSecret)
	if _, err := r.Admit("relay", values("Bearer older-secret-of-ses")); !errors.Is(err, inbound.ErrWrongSecret) {
		t.Errorf("the secret of another block: %v", err)
	}

	// While a secret cannot be opened, nobody who does not match is told that it is wrong, whatever the name.
	closed := block("closed", catalog.InboundJSON, "acme")
	closed.Secrets = []catalog.Secret{{Source: catalog.SecretEnv, Ref: "CLOSED"}}
	r.blocks(rotated, closed)
	for _, name := range []string{"ses", "closed", "nobody", "relay"} {
		_, err := r.Admit(name, values("Bearer wrong-wrong-wrong"))
		if e := (*catalog.Error)(nil); !errors.As(err, &e) || e.Code != catalog.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	f(values("Bearer "+secret), nil)
	f(nil, inbound.ErrNoSecret)
	if got := r.Troubles(); len(got) != 1 || got[0].Block != "closed" || !strings.Contains(got[0].Closed, "CLOSED") {
		t.Errorf("%+v", got)
	}
	closed.Secrets = rotated.Secrets
	r.blocks(closed)
	f(values("Bearer "+secret), inbound.ErrWrongSecret) // the block is gone
}

// event returns a message in the format json.
func event(typ, email string, project int64, at time.Time) map[string]any {
	m := map[string]any{"type": typ, "email": email, "at": at.UTC().Format(time.RFC3339Nano), "detail": "550 no such user"}
	if project != 0 {
		m["projectId"] = project
	}
	return m
}

// TestJSON: what a relay of one's own tells.
func TestJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("relay", catalog.InboundJSON, "acme"), block("pair", catalog.InboundJSON, "acme", "shop"))
	now := time.Now()
	r.takes("relay", event("hard_bounce", "Ada@Bücher.example", 0, now), [5]int{1})
	r.takes("relay", event("complaint", "ada@bücher.example", 1, now), [5]int{1})
	r.takes("pair", event("unsubscribe", "eve@example.com", 2, now), [5]int{1})
	r.has(1, `ada@xn--bcher-kva.example complaint "relay: 550 no such user" ""`, `Ada@xn--bcher-kva.example hard_bounce "relay: 550 no such user" ""`)
	r.has(2, `eve@example.com unsubscribe "pair: 550 no such user" ""`)

	f := func(text string, fields ...string) {
		t.Helper()
		r.refuses("relay", text, fields...)
	}
	f(``, "body")
	f(`null`, "body")
	f(`"x"`, "body")
	f(`{"type":"hard_bounce"`, "body")
	f(`{}`, "type", "email", "at")
	f(`{"Type":"hard_bounce","EMAIL":"a@b.example","At":"2026-01-01T00:00:00Z"}`, "type", "email", "at")
	f(`{"type":"soft_bounce","email":"a","projectId":0,"at":"today","detail":7}`, "detail", "type", "email", "projectId", "at")
	f(`{"type":"manual","email":"a@b.example\r\n","projectId":"1","at":"2999-01-01T00:00:00Z"}`, "type", "email", "projectId", "at")
	r.has(3)
}

// TestPostmark: messages as the documentation of Postmark has them.
func TestPostmark(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("postmark", catalog.InboundPostmark, "acme"))
	now := time.Now()
	mail := 0
	record := func(of, kind, address string) map[string]any {
		mail++
		return map[string]any{"RecordType": of, "MessageStream": "outbound", "ID": int64(4323372036854775807), "Type": kind, "TypeCode": 1, "Name": kind, "Tag": "t",
			"MessageID": fmt.Sprintf("883953F4-6105-42a2-a16a-77a8eac7%04d", mail), "Metadata": map[string]any{"a": "b"}, "ServerID": 23, "Description": "d", "Details": "smtp;550 5.1.1 unknown",
			"Email": address, "From": "shop@shop.example", "BouncedAt": now.Format("2006-01-02T15:04:05.9999999Z07:00"), "Inactive": true, "Subject": "s", "Content": "<dump>"}
	}
	change := func(m map[string]any, reason, origin string, on bool) map[string]any {
		return map[string]any{"RecordType": "SubscriptionChange", "MessageID": m["MessageID"], "ServerID": 23, "MessageStream": "outbound", "ChangedAt": m["BouncedAt"],
			"Recipient": m["Email"], "Origin": origin, "SuppressSending": on, "SuppressionReason": reason, "Tag": "t", "Metadata": map[string]any{}}
	}
	hard := record("Bounce", "HardBounce", "ada@example.com")
	r.takes("postmark", hard, [5]int{1})
	r.takes("postmark", hard, [5]int{0, 0, 1})
	r.takes("postmark", change(hard, "HardBounce", "Recipient", true), [5]int{0, 0, 1}) // the same outcome in other words
	r.remove(1, "ada@example.com")
	r.takes("postmark", change(hard, "HardBounce", "Recipient", true), [5]int{0, 0, 1})
	r.has(1)
	for _, soft := range []string{"Transient", "SoftBounce", "DnsError", "Blocked", "SpamNotification", "AutoResponder", "DMARCPolicy", "Subscribe", "Unknown", "ManuallyDeactivated"} {
		r.takes("postmark", record("Bounce", soft, "soft@example.com"), [5]int{0, 0, 0, 1})
	}
	for _, other := range []string{"Delivery", "Open", "Click"} {
		r.takes("postmark", record(other, "", "soft@example.com"), [5]int{0, 0, 0, 1})
	}
	r.takes("postmark", record("Bounce", "BadEmailAddress", "bad@example.com"), [5]int{1})
	r.takes("postmark", record("SpamComplaint", "SpamComplaint", "eve@example.com"), [5]int{1})
	left := record("", "", "left@example.com")
	r.takes("postmark", change(left, "ManualSuppression", "Customer", true), [5]int{0, 0, 0, 1})
	r.takes("postmark", change(left, "ManualSuppression", "Recipient", false), [5]int{0, 0, 0, 1})
	r.takes("postmark", change(left, "ManualSuppression", "Recipient", true), [5]int{1})
	r.has(1, `bad@example.com hard_bounce "postmark: smtp;550 5.1.1 unknown" ""`, `eve@example.com complaint "postmark: smtp;550 5.1.1 unknown" ""`,
		`left@example.com unsubscribe "postmark: suppressed at Postmark: ManualSuppression" ""`)
	r.refuses("postmark", `{}`, "RecordType")
	r.refuses("postmark", event("hard_bounce", "ada@example.com", 0, now), "RecordType") // another format
	r.refuses("postmark", `{"RecordType":"Bounce","Type":"HardBounce","Email":"x"}`, "Email", "BouncedAt")
}

// TestOnce: an outcome is applied once within 30 days, also where the address was on the list, and then not at all.
func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("relay", catalog.InboundJSON, "acme"), block("again", catalog.InboundJSON, "acme"))
	first, second := event("hard_bounce", "ada@example.com", 0, r.now), event("hard_bounce", "ada@example.com", 0, r.now.Add(time.Second))
	r.takes("relay", first, [5]int{1})
	r.takes("relay", second, [5]int{0, 1})
	r.remove(1, "ada@example.com")
	r.takes("relay", first, [5]int{0, 0, 1})
	r.takes("relay", second, [5]int{0, 0, 1})
	first["detail"], first["email"] = "other words", "ADA@example.com"
	r.takes("relay", first, [5]int{0, 0, 1})
	r.has(1)
	if err := inbound.Prune(r.Desk, context.Background()); err != nil {
		t.Fatal(err)
	}
	r.takes("relay", first, [5]int{0, 0, 1})
	r.pass(30*24*time.Hour - time.Minute)
	_ = inbound.Prune(r.Desk, context.Background())
	r.takes("relay", first, [5]int{0, 0, 1})
	marks := func() (n int) {
		_ = r.resolver.EachNamed("mail/inbound/", func(string, []byte) error { n++; return nil })
		return n
	}
	if marks() != 2 {
		t.Errorf("%d marks", marks())
	}
	for range 3 { // whether the mark is there or not
		r.pass(time.Hour)
		r.takes("relay", first, [5]int{0, 0, 0, 1})
		if err := inbound.Prune(r.Desk, context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if marks() != 0 {
		t.Errorf("%d marks stay", marks())
	}
	r.has(1)
	// A bounce of a later mail lists the address again.
	r.takes("relay", event("hard_bounce", "ada@example.com", 0, r.now), [5]int{1})
}

// TestOnceAtATime: of many that tell the same outcome at once, one applies it.
func TestOnceAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("relay", catalog.InboundJSON, "acme"))
	m := event("complaint", "ada@example.com", 0, r.now)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total [5]int
	for range 8 {
		wg.Go(func() {
			got, err := r.take("relay", m)
			mu.Lock()
			defer mu.Unlock()
			for i := range total {
				total[i] += got[i]
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if total != [5]int{1, 0, 7} {
		t.Errorf("%v", total)
	}
}

// TestFull: a block with too many marks takes nothing new, and others go on.
func TestFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("relay", catalog.InboundJSON, "acme"), block("other", catalog.InboundJSON, "acme"))
	r.AddMark("relay", inbound.MaxMarks)
	_, err := r.take("relay", event("hard_bounce", "ada@example.com", 0, r.now))
	if e := (*catalog.Error)(nil); !errors.As(err, &e) || e.Code != catalog.CodeRateLimited || r.count("relay", "full") != 1 {
		t.Errorf("%v", err)
	}
	if got := r.Troubles(); len(got) != 1 || !got[0].Full {
		t.Errorf("%+v", got)
	}
	r.takes("other", event("hard_bounce", "ada@example.com", 0, r.now), [5]int{1})
	if err := inbound.Prune(r.Desk, context.Background()); err != nil {
		t.Fatal(err)
	}
	r.takes("relay", event("hard_bounce", "bob@example.com", 0, r.now), [5]int{1})
}
