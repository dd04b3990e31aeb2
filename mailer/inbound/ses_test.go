package inbound_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/inbound"
	"fingerpost/resolver/catalog"
)

// TestSES: bounces and complaints, signed with either version, are listed for the project that has sent the mail; soft and
// transient ones are not.
func TestSES(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := newRig(t, s.Provider, block("ses", catalog.InboundSES, "acme", "shop"))
	now := time.Now()
	of := func(address string) string { return r.sent(2, address) }
	for _, version := range []string{"1", "2"} {
		address := "ada" + version + "@example.com"
		m := s.message("Notification", version, bounce("Permanent", "f"+version, of(address), now, address+" 5.1.1"), now)
		r.takes("ses", m, [5]int{1})
		r.takes("ses", m, [5]int{0, 0, 1})
	}
	r.has(2, `ada1@example.com hard_bounce "ses: smtp; 550 5.1.1 user unknown" ""`, `ada2@example.com hard_bounce "ses: smtp; 550 5.1.1 user unknown" ""`)
	trail, err := r.resolver.Audit(catalog.AuditQuery{Action: catalog.AuditSuppress, Page: 1, Limit: 10})
	if err != nil || len(trail.Entries) != 2 {
		t.Fatalf("%+v, %v", trail, err)
	}
	if e := trail.Entries[0]; e.Door != catalog.DoorInbound || e.Actor != "" || e.Key != "" || e.ProjectID != 2 || e.Slug != "shop" || e.RequestID != "r1" ||
		e.Object != "ada2@example.com" {
		t.Errorf("%+v", e)
	}

	notify := func(text string, want [5]int) {
		t.Helper()
		now = now.Add(time.Millisecond)
		r.takes("ses", s.message("Notification", "2", text, now), want)
	}
	withSubject := s.message("Notification", "2", bounce("Permanent", "f3", "", now, "Bob <bob@example.com> 5.1.1"), now, func(m map[string]any) { m["Subject"] = "a subject" })
	r.takes("ses", withSubject, [5]int{0, 0, 0, 1}) // "Bob" is no address
	notify(bounce("Transient", "t", "", now, "soft@example.com 4.4.7"), [5]int{0, 0, 0, 1})
	notify(bounce("Undetermined", "u", "", now, "soft@example.com 5.0.0"), [5]int{0, 0, 0, 1})
	notify(bounce("Permanent", "p", of("gone@EXAMPLE.com"), now, "full@example.com 5.2.2", "far@example.com 5.4.4", "blocked@example.com 5.7.1", "Gone@Example.com 5.1.1"), [5]int{1, 0, 0, 3})
	notify(bounce("Permanent", "again", of("gone@example.com"), now, "gone@example.com 5.1.1"), [5]int{0, 1})
	notify("Successfully validated SNS topic for Amazon SES event publishing.", [5]int{0, 0, 0, 1})
	notify(`{"eventType":"Delivery","mail":{}}`, [5]int{0, 0, 0, 1})
	complaint := func(feedback, kind, event string) string {
		out, _ := json.Marshal(map[string]any{event: "Complaint", "complaint": map[string]any{"feedbackId": feedback, "complaintFeedbackType": kind, "userAgent": "x",
			"timestamp": now.UTC().Format(time.RFC3339), "complainedRecipients": []map[string]any{{"emailAddress": "Eve Doe <eve@example.com>"}}}, "mail": sesMail(of("eve@example.com"), "eve@example.com")})
		return string(out)
	}
	notify(complaint("c1", "not-spam", "notificationType"), [5]int{0, 0, 0, 1})
	notify(complaint("c2", "abuse", "eventType"), [5]int{1})
	left, _ := json.Marshal(map[string]any{"eventType": "Subscription", "subscription": map[string]any{"contactList": "all", "timestamp": now.UTC().Format(time.RFC3339),
		"newTopicPreferences": map[string]any{"unsubscribeAll": true}}, "mail": sesMail(of("left@example.com"), "left@example.com")})
	notify(string(left), [5]int{1})
	notify(strings.Replace(string(left), `"unsubscribeAll":true`, `"unsubscribeAll":false`, 1), [5]int{0, 0, 0, 1})
	if got := r.list(2); len(got) != 5 || !slices.Contains(got, `eve@example.com complaint "ses: abuse" ""`) || !slices.Contains(got, `left@example.com unsubscribe "ses" ""`) {
		t.Errorf("%q", got)
	}
	r.has(1)
	if n := r.count("ses", "listed"); n != 5 {
		t.Errorf("%d are counted as listed", n)
	}
	if asked := s.questions(); len(asked) != 1 {
		t.Errorf("the certificate was fetched %d times: %q", len(asked), asked)
	}
}

// TestForged: what SNS has not signed now, or what leads elsewhere, lists nobody, and no other address is asked.
func TestForged(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := newRig(t, s.Provider, block("ses", catalog.InboundSES, "acme"))
	now := time.Now()
	text := bounce("Permanent", "f", "<x@y>", now, "ada@example.com 5.1.1")
	f := func(change func(m map[string]any), fields ...string) {
		t.Helper()
		m := s.message("Notification", "2", text, now)
		change(m)
		r.refuses("ses", m, fields...)
	}
	set := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m[name] = value }
	}
	for _, address := range []string{"", "x", strings.Replace(s.server.URL, "https", "http", 1) + "/SimpleNotificationService-a.pem", "https://evil.example/SimpleNotificationService-a.pem",
		s.server.URL + "/SimpleNotificationService-a.pem?x=y", s.server.URL + "/SimpleNotificationService-a.pem#x", s.server.URL + "/?Action=x.pem", s.server.URL + "/%2e%2e/SimpleNotificationService-a.pem",
		s.server.URL + "/a/SimpleNotificationService-a.pem", strings.Replace(s.server.URL, "https://", "https://u:p@", 1) + "/SimpleNotificationService-a.pem",
		strings.Replace(s.server.URL, "https://", "https://evil.example@", 1) + ".evil.example/SimpleNotificationService-a.pem"} {
		f(set("SigningCertURL", address), "SigningCertURL")
	}
	f(set("SignatureVersion", "3"), "SignatureVersion")
	f(set("Signature", "%"), "Signature")
	f(set("Type", "Notice"), "Type")
	f(set("Timestamp", "soon"), "Timestamp")
	f(set("MessageId", ""), "MessageId")
	r.refuses("ses", s.message("Notification", "2", text, now.Add(-61*time.Minute)), "Timestamp")
	r.refuses("ses", s.message("Notification", "2", text, now.Add(61*time.Minute)), "Timestamp")
	r.refuses("ses", text, "Type", "MessageId", "Timestamp", "SignatureVersion", "SigningCertURL") // raw delivery
	r.refuses("ses", `[]`, "body")
	r.refuses("ses", `{"Type":1}`, "body")
	if asked := s.questions(); len(asked) > 0 {
		t.Errorf("asked for %q", asked)
	}
	for _, name := range []string{"Message", "MessageId", "Timestamp", "TopicArn"} {
		value := map[string]string{"Timestamp": now.UTC().Add(time.Second).Format(time.RFC3339)}[name]
		if name == "Message" {
			value = strings.Replace(text, "ada@", "eve@", 1)
		}
		f(set(name, value+map[bool]string{true: "x"}[value == ""]), "Signature")
	}
	f(set("Subject", "x"), "Signature")
	f(set("SignatureVersion", "1"), "Signature")
	f(set("Signature", base64.StdEncoding.EncodeToString(make([]byte, 256))), "Signature")
	r.has(1)
	if n := r.count("ses", "refused"); n < 20 {
		t.Errorf("%d messages were refused", n)
	}
	// A captured message does not work at another block, nor later.
	m := s.message("Notification", "2", text, now)
	r.takes("ses", m, [5]int{1})
	r.remove(1, "ada@example.com")
	r.takes("ses", m, [5]int{0, 0, 1})
	r.has(1)
	r.pass(61 * time.Minute)
	r.refuses("ses", m, "Timestamp")
}

// TestCertificates: a certificate that is missing, wrong, weak or too old lets nothing in, and one that comes later does.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := newRig(t, s.Provider, block("ses", catalog.InboundSES, "acme"))
	good := s.answer
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const redirect, huge = "redirect", "huge"
	for name, text := range map[string][]byte{"none": nil, "text": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "old": certificateOf(t, s.key, &s.key.PublicKey, time.Now().Add(-time.Minute)),
		"elliptic": certificateOf(t, s.key, &elliptical.PublicKey, time.Now().Add(time.Hour)), redirect: nil, huge: make([]byte, 65<<10)} {
		s.answers(func(w http.ResponseWriter, req *http.Request) {
			if name == redirect {
				http.Redirect(w, req, "/SimpleNotificationService-b.pem", http.StatusFound)
				return
			}
			_, _ = w.Write(text)
		})
		now := r.now
		_, err := r.take("ses", s.message("Notification", "2", bounce("Permanent", name, "", now, name+"@example.com 5.1.1"), now))
		e, is := err.(*catalog.Error)
		if want := map[bool]catalog.Code{true: catalog.CodeUnavailable, false: catalog.CodeValidation}[name == redirect || name == huge]; !is || e.Code != want {
			t.Errorf("%s: %v", name, err)
		}
		before := len(s.questions())
		if _, err := r.take("ses", s.message("Notification", "2", "{}", now)); err == nil || len(s.questions()) != before {
			t.Errorf("%s: it is fetched again at once, %v", name, err)
		}
		r.pass(11 * time.Second)
	}
	r.has(1)
	s.answers(good)
	r.takes("ses", s.message("Notification", "2", bounce("Permanent", "late", "", r.now, "late@example.com 5.1.1"), r.now), [5]int{1})
}

// TestSubscription: a subscription is confirmed at the provider's address for this topic, and nowhere else.
func TestSubscription(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := newRig(t, s.Provider, block("ses", catalog.InboundSES, "acme"))
	now := time.Now()
	at := func(address string) func(m map[string]any) {
		return func(m map[string]any) { m["SubscribeURL"] = address }
	}
	own := s.server.URL + "/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=2336412f37"
	for _, bad := range []string{"https://evil.example/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=2336412f37", strings.Replace(own, "https", "http", 1),
		strings.Replace(own, "ConfirmSubscription", "DeleteTopic", 1), strings.Replace(own, "bounces", "others", 1), strings.Replace(own, "Token=2", "Token=3", 1), own + "&Action=DeleteTopic",
		strings.Replace(own, "/?", "/x?", 1), s.server.URL, own + "&Token=2336412f37", ""} {
		r.refuses("ses", s.message("SubscriptionConfirmation", "1", "You have chosen to subscribe", now, at(bad)), "SubscribeURL")
	}
	if asked := s.questions(); len(asked) > 0 {
		t.Errorf("asked for %q", asked)
	}
	m := s.message("SubscriptionConfirmation", "1", "You have chosen to subscribe", now)
	m["Message"] = "changed"
	r.refuses("ses", m, "Signature")
	r.takes("ses", s.message("SubscriptionConfirmation", "1", "You have chosen to subscribe", now), [5]int{})
	r.takes("ses", s.message("UnsubscribeConfirmation", "2", "You have chosen to leave", now), [5]int{})
	asked := s.questions()
	if len(asked) != 2 || !strings.HasPrefix(asked[1], "/?Action=ConfirmSubscription&TopicArn=arn%3Aaws") {
		t.Errorf("asked for %q", asked)
	}
	if log := r.log.String(); !strings.Contains(log, "was confirmed") || !strings.Contains(log, "has ended") {
		t.Errorf("the log says %s", log)
	}
	s.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if _, err := r.take("ses", s.message("SubscriptionConfirmation", "1", "x", now)); err == nil || err.(*catalog.Error).Code != catalog.CodeUnavailable {
		t.Errorf("a confirmation that fails: %v", err)
	}
}

// TestAmazonHosts: without a Provider of a test, only hosts of SNS are.
func TestAmazonHosts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, block("ses", catalog.InboundSES, "acme"))
	f := func(host string, good bool) {
		t.Helper()
		if inbound.AmazonHost.MatchString(host) != good {
			t.Errorf("%s: want %t", host, good)
		}
	}
	for _, host := range []string{"sns.us-east-1.amazonaws.com", "sns.eu-central-2.amazonaws.com", "sns.us-gov-west-1.amazonaws.com", "sns.cn-north-1.amazonaws.com.cn", "sns.ap-southeast-12.amazonaws.com"} {
		f(host, true)
	}
	for _, host := range []string{"", "sns.amazonaws.com", "sns.us-east-1.amazonaws.com:443", "sns.us-east-1.amazonaws.com.evil.example", "evil.sns.us-east-1.amazonaws.com", "xsns.us-east-1.amazonaws.com",
		"sns.s3-us-west-2.amazonaws.com", "sns.s3.amazonaws.com", "sns.us-east-1.amazonaws.comx", "snsxus-east-1.amazonaws.com", "sns.us-east-1.amazonaws.com\n", "sns.us-east-1.s3.amazonaws.com", "SNS.us-east-1.amazonaws.com"} {
		f(host, false)
	}
	now := time.Now()
	s := newSigner(t)
	r.refuses("ses", s.message("Notification", "2", "{}", now), "SigningCertURL")
}
