package doctor

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/configsrc"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
)

// TestCertificate: one that is valid, ends soon, has ended, or begins later.
func TestCertificate(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		from, to time.Duration
		state    State
		says     string
	}{
		"valid":  {-day, 90 * day, OK, "is valid until"},
		"soon":   {-day, 3 * day, Warning, "is valid until"},
		"ended":  {-90 * day, -day, Failure, "was valid until"},
		"future": {day, 90 * day, Failure, "is valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(patient)
			p.Listen.TLSCert, p.Listen.TLSKey = newCertificate(t, time.Now().Add(c.from), time.Now().Add(c.to))
			rs := p.certificate(t.Context())
			if len(rs) != 1 || rs[0].State != c.state || !strings.Contains(rs[0].Message, c.says) {
				t.Errorf("%+v, want %s with %q", rs, c.state, c.says)
			}
			p.Listen.TLSKey = p.Listen.TLSCert
			if rs := p.certificate(t.Context()); rs[0].State != Failure {
				t.Errorf("without its key: %+v", rs)
			}
		})
	}
}

func newCertificate(t *testing.T, from, to time.Time) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, DNSNames: []string{"a.example"}}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	private, err2 := x509.MarshalPKCS8PrivateKey(pair)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
}

// TestClock: a program of the future means that the clock is behind.
func TestClock(t *testing.T) {
	p := &patient{Options: Options{Built: time.Now().Add(time.Hour)}}
	p.Files.Data = t.TempDir()
	if rs := p.clock(t.Context()); len(rs) != 1 || rs[0].State != Failure || !strings.Contains(rs[0].Message, "this program is of") {
		t.Errorf("%+v", rs)
	}
	p.Built = time.Time{}
	if rs := p.clock(t.Context()); len(rs) != 1 || rs[0].State != OK {
		t.Errorf("%+v", rs)
	}
}

// TestAskServer: what is no fingerpost is not taken for one, and an address for all addresses is asked on this machine.
func TestAskServer(t *testing.T) {
	for addr, want := range map[string]string{":9090": "127.0.0.1:9090", "0.0.0.0:9090": "127.0.0.1:9090",
		"[::]:9090": "[::1]:9090", "10.0.0.1:9090": "10.0.0.1:9090"} {
		if got := reachable(addr); got != want {
			t.Errorf("%s is asked at %s, want %s", addr, got, want)
		}
	}
	for _, addr := range []string{"", "9090", "unix:", "unix:/nowhere", "127.0.0.1:0", "a b:1"} {
		if s := askServer(t.Context(), addr); s != nil {
			t.Errorf("%s answers %+v", addr, s)
		}
	}
}

// TestPlain: what another machine says is one printable line.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{"a\nb\t c": "a b c", "\x1b[31mred\u202e": "[31mred", "\xff": "\uFFFD",
		strings.Repeat("ä", 600): strings.Repeat("ä", 500) + "…"} {
		if got := plain(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestSavedSinceTheReload: a file that was broken after the server's last reload has its problem, and one that the server
// knows has it once.
func TestSavedSinceTheReload(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.hcl": `project "acme" { name = "Acme" }`, "bad.hcl": `project "umbrella" {`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checked, err := offline.Check(dir)
	if err != nil || len(checked.Problems) == 0 {
		t.Fatal(err, checked)
	}
	f := func(lastReload time.Duration, told hclfile.Diagnostics, problems int) {
		t.Helper()
		status := &configsrc.Status{LastReload: time.Now().Add(lastReload), Files: 1, Problems: told, Errors: len(told)}
		running := &server{Config: status}
		if told != nil {
			running.Conditions = []conditions.Condition{{ID: "files-broken"}}
		}
		p := &patient{running: running, checked: checked}
		n := 0
		for _, r := range p.files(t.Context()) {
			if r.State == Failure && strings.Contains(r.Message, "bad.hcl:1") {
				n++
			}
		}
		if n != problems {
			t.Errorf("reload %v ago, %d problems told: %+v, want %d of bad.hcl", -lastReload, len(told), p.files(t.Context()), problems)
		}
	}
	f(-time.Hour, nil, 1)
	f(-time.Hour, checked.Problems, 1)
	f(time.Hour, checked.Problems, 1)
	f(time.Hour, nil, 0)
}

// TestTellsEachCondition: each kind of condition that a running server has is told by its check, as bad as it is; alike
// ones are counted; and what a newer server has is told, too.
func TestTellsEachCondition(t *testing.T) {
	t.Parallel()
	said := func(ids ...string) (all []Result) {
		p := &patient{running: &server{Config: new(configsrc.Status), Git: new(gitrepo.Status), Cluster: new(cluster.Status)}}
		p.Files.Data = t.TempDir()
		p.Listen.TLSCert, p.Listen.TLSKey = newCertificate(t, time.Now().Add(-time.Hour), time.Now().Add(1000*time.Hour))
		checked := map[string]bool{}
		for i, id := range ids {
			p.running.Conditions = append(p.running.Conditions, conditions.Condition{ID: id, Sentence: fmt.Sprintf("No %d of %s.", i, id), Remedy: "mend it"})
			checked[cmp.Or(conditions.KindOf(id).Check, "server")] = true
		}
		for _, c := range checks {
			if checked[c.name] {
				all = append(all, c.run(p, t.Context())...)
			}
		}
		return all
	}
	for _, k := range append(conditions.Kinds(), conditions.Kind{ID: "of-tomorrow"}) {
		if !k.Found() && k.ID != "of-tomorrow" {
			continue
		}
		want := warning("mend it", "no 0 of %s", k.ID)
		if k.Broken {
			want.State = Failure
		}
		if rs := said(k.ID); !slices.Contains(rs, want) || k.Check != "" && k.Check != "server" && len(rs) != 1 {
			t.Errorf("%s: its check %q, which must be one of checks and tell of conditions, gives %+v", k.ID, k.Check, rs)
		}
	}
	rs := said(slices.Repeat([]string{"domain-lost"}, maxLines+2)...)
	if n := len(rs); n != maxLines+1 || rs[n-1].Message != "and 2 problems more" {
		t.Errorf("many: %+v", rs)
	}
}
