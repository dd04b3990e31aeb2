package webhook_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A judge is the npm package standardwebhooks in a process of Node.
type judge struct {
	t  *testing.T
	in *json.Encoder
	to *bufio.Reader
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	folder, node := testrig.NodePackages(t)
	cmd := exec.Command(node, "testdata/judge.cjs")
	cmd.Env = append(os.Environ(), "FINGERPOST_NPM="+folder)
	cmd.Stderr = t.Output()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &judge{t, json.NewEncoder(in), bufio.NewReader(out)}
}

// verdict returns what the package says of a delivery; "" if it is signed with the secret.
func (j *judge) verdict(q request, secret []byte) (says string) {
	j.t.Helper()
	headers := map[string]string{}
	for name := range q.header {
		headers[name] = q.header.Get(name)
	}
	err := j.in.Encode(map[string]any{"secret": "whsec_" + base64.StdEncoding.EncodeToString(secret), "headers": headers,
		"body": q.body})
	if err != nil {
		j.t.Fatal(err)
	}
	line, err := j.to.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &says)
	}
	if err != nil {
		j.t.Fatalf("%q: %v", line, err)
	}
	return says
}

// TestStandardWebhooks: the library that receivers use verifies each delivery with each of the webhook's secrets, and with
// no other one, whatever its text.
func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	r := newRig(t)
	one, three := newReceiver(t, nil), newReceiver(t, nil)
	secrets := [][]byte{[]byte("the third secret of the webhook"), []byte("the second secret of the webhook"), secret}
	rotating := hook("rotating", three.URL)
	rotating.Secrets = secrets
	r.start(hook("crm", one.URL), rotating)
	texts := []string{"plain", "bücher.example", "Σίσυφος & <b>\"quoted\"</b>", "例え.テスト", "🚚 unterwegs", "line\u2028end\r\n\ttab\x00",
		"not UTF-8: \xff\xc3", "e\u0301 and é", strings.Repeat("ж", 40<<10)}
	for i, text := range texts {
		r.append(catalog.AuditEntry{Action: "project.update", ProjectID: int64(i + 1), Slug: "p", Object: "p", Actor: "Zoë <z@ö.example>",
			Changes: []catalog.FieldChange{{Field: "name", Before: "", After: text}}})
	}
	r.idle("crm")
	r.idle("rotating")
	judged := func(to *receiver, good ...[]byte) {
		t.Helper()
		all := to.all()
		if len(all) != len(texts) {
			t.Errorf("%d deliveries of %d", len(all), len(texts))
		}
		for _, q := range all {
			for _, s := range good {
				if says := j.verdict(q, s); says != "" {
					t.Errorf("%s: %s: %.200s", q.id, says, q.body)
				}
			}
			if says := j.verdict(q, []byte("a secret that is of nobody here")); !strings.Contains(says, "No matching signature") {
				t.Errorf("with another secret: %q", says)
			}
			q.body = append([]byte(nil), q.body...)
			q.body[len(q.body)-3] ^= 1
			if says := j.verdict(q, good[0]); !strings.Contains(says, "No matching signature") {
				t.Errorf("with another body: %q", says)
			}
		}
	}
	judged(one, secret)
	judged(three, secrets...)
	if signed := fmt.Sprint(len(strings.Fields(three.all()[0].header.Get("webhook-signature")))); signed != "3" {
		t.Errorf("%s signatures", signed)
	}
	if out, err := r.Test(t.Context(), "crm"); err != nil || !out.Delivered {
		t.Errorf("%+v, %v", out, err)
	}
	if all := one.all(); j.verdict(all[len(all)-1], secret) != "" {
		t.Error("a test is not signed as other deliveries are")
	}
}
