package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fingerpost/api/client"
)

// TestExplainOtherServer: a server that ignores view=full is told apart from one that does not answer.
func TestExplainOtherServer(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{
		`{"id":7,"slug":"acme"}`:               "does not tell where values come from",
		`{"id":7,"slug":"acme","origin":null}`: "does not tell where values come from",
		`[]`:                                   "read the answer",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data := full
			if strings.HasSuffix(r.URL.Path, "/resolve") {
				data = `{"project":{"id":7,"slug":"acme"},"matchedDomain":{"domain":"acme.example"}}`
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"success":true,"message":"ok","data":` + data + `}`))
		}))
		c := client.New(client.Options{URL: server.URL, Key: "k"})
		_, err := explainServer(t.Context(), c, fromServer(t.Context(), c))("acme.example")
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", full, err, want)
		}
	}
}

// TestWriteExplainedOdd: what a server sends can neither break the output nor control the terminal.
func TestWriteExplainedOdd(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{}`, `{"origin":7}`, `{"domains":{},"origin":{"domains":7}}`, `{"domains":[7,null],"origin":{"domains":[]}}`,
		`{"smtpConfig":[],"serviceSettings":"x","origin":{"smtpConfig":{},"defaults":[]}}`,
		`{"name":{"a\u001b[31m":["\u001b"]},"slug":"\u001b[31m\n","status":[1],"origin":{"name":{"file":"\u001b[31m","line":"\n"},"slug":"\u0007","status":{}}}`,
		`{"domains":[{"domain":"a.example","active":"\u001b"}],"origin":{"domains":[{"active":{"file":7}}]}}`,
	} {
		var b strings.Builder
		if err := writeExplained(&b, json.RawMessage(document), "a.example"); err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if text := b.String(); strings.ContainsAny(text, "\x1b\x07") || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s:\n%q", document, text)
		}
	}
	if err := writeExplained(new(strings.Builder), json.RawMessage(`[]`), "a.example"); err == nil {
		t.Error("a list is no explanation")
	}
}
