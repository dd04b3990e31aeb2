package main

import (
	"errors"
	"fingerpost/cmd/testrig"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each peer that is installed gives every record, and nothing for a name that it does not have.
func TestPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs three servers")
	}
	b := smallBench(t)
	c := smallCorpus(t, b)
	r := records{corpus: c, bodies: floorAnswers(c.corpusParams, 977)}
	for _, p := range peers() {
		t.Run(p.name, func(t *testing.T) {
			if _, err := p.find(); err != nil {
				testrig.Missing(t, p.name, err.Error()+": "+p.install)
			}
			s, err := b.startPeer(t.Context(), p, r)
			if err != nil {
				t.Fatal(err)
			}
			side := known(s, c, uniformSchedule(c.Domains, 1))
			if p.protocol != nil {
				side.protocol = p.protocol(s.addr)
			}
			if err := b.warm(t.Context(), side, c.Domains); err != nil {
				t.Error(err)
			}
			if cpu, err := processCPU(s.pid); err != nil || cpu < 0 {
				t.Errorf("CPU %v, %v", cpu, err)
			}
			if mem, err := s.memory(); err != nil || mem.peak < 1 {
				t.Errorf("memory %+v, %v", mem, err)
			}
			side.asker = &strangers{random: rand.New(rand.NewPCG(1, 2))}
			if err := b.warm(t.Context(), side, 20); err != nil {
				t.Errorf("asked for strangers: %v", err)
			}
			end(t, b)
			left, err := filepath.Glob(filepath.Join(b.work, "peer-*-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// What is not installed is left out, with the way to get it; what does not start is, too, with its log.
func TestPeersLeftOut(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	r := records{corpus: c, bodies: floorAnswers(c.corpusParams, 977)}
	absent := nginx()
	absent.programs = []string{"no-such-program"}
	if _, err := b.startPeer(t.Context(), absent, r); !errors.Is(err, errNotInstalled) {
		t.Errorf("start: %v", err)
	}
	broken := absent
	broken.programs = []string{"false"}
	if _, err := b.startPeer(t.Context(), broken, r); err == nil || !strings.Contains(err.Error(), "its log is") {
		t.Errorf("start: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := os.Stat("/usr/sbin/nginx"); err == nil {
		t.Skip("nginx is where it is found without a PATH")
	}
	sides, notes := b.startPeers(t.Context(), c, 977, uniformSchedule(c.Domains, 1))
	if len(sides) != 0 || len(notes) != 3 || !strings.Contains(notes[0], "nginx is left out: it is not installed. To have it here: install the package nginx") {
		t.Errorf("%d sides, notes %q", len(sides), notes)
	}
}

func TestProtocols(t *testing.T) {
	type parsed struct {
		status int
		body   string
	}
	f := func(p protocol, text string, want parsed) {
		t.Helper()
		for cut := range len(text) {
			if a, whole, err := p.parse([]byte(text[:cut])); whole || err != nil {
				t.Errorf("%q: %+v, %v, %v", text[:cut], a, whole, err)
			}
		}
		a, whole, err := p.parse([]byte(text))
		if err != nil || !whole || a.length != len(text) || (parsed{a.status, string(a.body)}) != want {
			t.Errorf("%q: %+v, %v, %v", text, a, whole, err)
		}
	}
	bad := func(p protocol, text string) {
		t.Helper()
		if a, _, err := p.parse([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, a)
		}
	}
	asks := func(p protocol, want string) {
		t.Helper()
		if got := string(p.appendRequest([]byte("x"), []byte("a.example"))); got != "x"+want {
			t.Errorf("asks %q, want %q", got, want)
		}
	}
	asks(redisGet{}, "*2\r\n$3\r\nGET\r\n$9\r\na.example\r\n")
	f(redisGet{}, "$5\r\nhello\r\n", parsed{200, "hello"})
	f(redisGet{}, "$0\r\n\r\n", parsed{200, ""})
	f(redisGet{}, "$-1\r\n", parsed{404, ""})
	for _, text := range []string{"+OK\r\n", "-ERR no\r\n", "$x\r\n", "$-2\r\n", "$99999999\r\n"} {
		bad(redisGet{}, text)
	}
	e := &etcdRange{addr: "127.0.0.1:1"}
	asks(e, "POST /v3/kv/range HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n"+
		`{"serializable":true,"key":"YS5leGFtcGxl"}`)
	f(e, "HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n"+`{"kvs":[{"key":"YQ","value":"aGk="}]}`, parsed{200, "hi"})
	f(e, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n"+`{"header":{}}`, parsed{404, ""})
	f(e, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", parsed{503, ""})
	bad(e, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n"+`{"value":"aGk=`)
	bad(e, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n"+`{"value":"!!!"}`)
}

// strangers asks random names that no project has.
type strangers struct{ random *rand.Rand }

func (s *strangers) ask(_ *question, dst []byte) []byte {
	for v, i := s.random.Uint64(), 0; i < 12; i++ {
		dst = append(dst, 'a'+byte(v%26))
		v /= 26
	}
	return append(dst, ".unknown.example"...)
}

func (s *strangers) judge(_ *question, a answer) fault {
	if a.status != 404 {
		return faultStatus
	}
	return faultNone
}
