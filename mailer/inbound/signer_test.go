package inbound_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/mailer/inbound"
	"fingerpost/resolver/publicnet"
)

// A signer is a provider of ours in the place of SNS: a server with https and a certificate, and a key that signs.
type signer struct {
	*inbound.Provider
	t      testing.TB
	server *httptest.Server
	key    *rsa.PrivateKey
	mu     sync.Mutex // guards what follows
	asked  []string   // paths with their queries
	answer http.HandlerFunc
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{t: t, key: key}
	pemText := certificateOf(t, key, &key.PublicKey, time.Now().Add(time.Hour))
	s.answer = func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, ".pem") {
			_, _ = w.Write(pemText)
		}
	}
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, req.URL.RequestURI())
		answer := s.answer
		s.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(s.server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.server.Certificate())
	s.Provider = &inbound.Provider{Host: regexp.MustCompile("^" + regexp.QuoteMeta(strings.TrimPrefix(s.server.URL, "https://")) + "$"),
		Client: publicnet.NewClient(publicnet.ClientOptions{Roots: roots, Guard: publicnet.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})}
	return s
}

// certificateOf returns a certificate for a key, in PEM.
func certificateOf(t testing.TB, signs *rsa.PrivateKey, of any, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, of, signs)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (s *signer) answers(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *signer) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

const topic = "arn:aws:sns:eu-west-1:123456789012:bounces"

// message returns a message of SNS as its documentation has it, signed.
func (s *signer) message(typ, version, text string, at time.Time, change ...func(m map[string]any)) map[string]any {
	m := map[string]any{"Type": typ, "MessageId": fmt.Sprintf("id-%d", at.UnixNano()), "TopicArn": topic, "Message": text,
		"Timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"), "SignatureVersion": version,
		"SigningCertURL": s.server.URL + "/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem"}
	if typ != "Notification" {
		m["Token"] = "2336412f37"
		m["SubscribeURL"] = s.server.URL + "/?Action=ConfirmSubscription&TopicArn=" + url.QueryEscape(topic) + "&Token=2336412f37"
	} else {
		m["UnsubscribeURL"] = s.server.URL + "/?Action=Unsubscribe&SubscriptionArn=x"
	}
	for _, c := range change {
		c(m)
	}
	var b strings.Builder
	for _, name := range []string{"Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"} {
		if value, is := m[name].(string); is {
			b.WriteString(name + "\n" + value + "\n")
		}
	}
	hash, sum := crypto.SHA256, sha256.Sum256([]byte(b.String()))
	digest := sum[:]
	if version == "1" {
		old := sha1.Sum([]byte(b.String()))
		hash, digest = crypto.SHA1, old[:]
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, hash, digest)
	if err != nil {
		s.t.Fatal(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	return m
}

// bounce returns the notification of a bounce as the documentation of SES has it.
func bounce(kind, feedback, messageID string, at time.Time, recipients ...string) string {
	var list []map[string]any
	for _, r := range recipients {
		address, status, _ := strings.Cut(r, " ")
		list = append(list, map[string]any{"emailAddress": address, "action": "failed", "status": status,
			"diagnosticCode": "smtp; 550 " + status + " user\r\nunknown"})
	}
	out, _ := json.Marshal(map[string]any{"notificationType": "Bounce",
		"bounce": map[string]any{"bounceType": kind, "bounceSubType": "General", "bouncedRecipients": list, "feedbackId": feedback,
			"timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"), "reportingMTA": "dns; email.example.com", "remoteMtaIp": "127.0.2.0"},
		"mail": sesMail(messageID, recipients...)})
	return string(out)
}

func sesMail(messageID string, destination ...string) map[string]any {
	return map[string]any{"messageId": "0000013811", "source": "shop@shop.example", "destination": destination, "headersTruncated": false,
		"headers":       []map[string]any{{"name": "From", "value": "shop@shop.example"}, {"name": "Message-ID", "value": messageID}},
		"commonHeaders": map[string]any{"from": []string{"shop@shop.example"}, "messageId": messageID, "subject": "Hello"}}
}
