package main

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// nginx gives every record, and nothing for a name that it does not have.
func TestNginx(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	if _, err := findNginx(); err != nil {
		testrig.Missing(t, nginxName, err.Error()+": "+getNginx)
	}
	side, err := b.nginx(t.Context(), c, 977, uniformSchedule(c.Domains))
	if err != nil {
		t.Fatal(err)
	}
	if cpu, err := processCPU(side.server.pid); err != nil || cpu < 0 {
		t.Errorf("CPU %v, %v", cpu, err)
	}
	if mem, err := side.server.memory(); err != nil || mem.peak < 1 {
		t.Errorf("memory %+v, %v", mem, err)
	}
	side.asker = &strangers{random: rand.New(rand.NewPCG(1, 2))}
	if err := b.warm(t.Context(), side); err != nil {
		t.Errorf("asked for strangers: %v", err)
	}
	end(t, b)
	left, err := filepath.Glob(filepath.Join(b.work, "peer-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	broken := *c
	broken.key = `"`
	if _, err := b.nginx(t.Context(), &broken, 977, nil); err == nil || !strings.Contains(err.Error(), "its log is") {
		t.Errorf("start with a configuration that is wrong: %v", err)
	}
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
