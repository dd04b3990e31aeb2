package main

import (
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/bench/wire"
	"fingerpost/cmd/testrig"
)

// nginx gives every record, and nothing for a name that it does not have.
func TestNginx(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	if _, err := findNginx(); err != nil {
		testrig.Missing(t, nginxName, err.Error()+": "+getNginx)
	}
	s, err := b.nginx(t.Context(), c, 977)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.fill(t.Context(), s, c, c.names()); err != nil {
		t.Fatal(err)
	}
	if cpu, err := processCPU(s.pid); err != nil || cpu <= 0 {
		t.Errorf("CPU %v, %v", cpu, err)
	}
	if mem, err := s.memory(); err != nil || mem.peak < 1 {
		t.Errorf("memory %+v, %v", mem, err)
	}
	stranger := wire.NewClient(s.addr, wire.KeyField, c.key)
	defer stranger.Close()
	if a, err := stranger.Resolve([]byte("nobody.unknown.example")); err != nil || a.Status != 404 {
		t.Errorf("asked for a stranger: %d, %v", a.Status, err)
	}
	end(t, b)
	left, err := filepath.Glob(filepath.Join(b.work, "peer-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	broken := newCorpus("", b.corpus)
	broken.key = `"`
	if _, err := b.nginx(t.Context(), broken, 977); err == nil || !strings.Contains(err.Error(), "its log is") {
		t.Errorf("start with a configuration that is wrong: %v", err)
	}
}
