package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A hookReceiver answers events with a status, and keeps what it got.
type hookReceiver struct {
	url    string
	mu     sync.Mutex
	status int
	got    []receivedEvent
}

// refusal is the answer with any status but 204.
const refusal = "said \x1b[31m<b>so</b>"

type receivedEvent struct {
	header http.Header
	body   string
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	h := &hookReceiver{status: http.StatusNoContent}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, receivedEvent{r.Header, string(body)})
		if w.WriteHeader(h.status); h.status != http.StatusNoContent {
			_, _ = io.WriteString(w, refusal)
		}
	}))
	t.Cleanup(s.Close)
	h.url = s.URL + "/hidden"
	return h
}

func (h *hookReceiver) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *hookReceiver) all() []receivedEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

func (e receivedEvent) id() string { return e.header.Get("webhook-id") }

func (e receivedEvent) signedBy(secret string) bool {
	return signedWith(e.header, []byte(e.body), secret)
}

// signedWith reports whether a delivery has the signature of a secret, as Standard Webhooks 1.0 defines it.
func signedWith(h http.Header, body []byte, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	return slices.Contains(strings.Fields(h.Get("webhook-signature")), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
