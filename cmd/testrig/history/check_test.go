package history_test

import (
	"net/http"
	"testing"

	"fingerpost/cmd/testrig/history"
	"fingerpost/resolver/catalog"
)

const (
	epoch = "0123456789abcdef"
	later = "fedcba9876543210" // the epoch after a restore
)

func at(epoch string, generation uint64) catalog.Position {
	return catalog.Position{Epoch: epoch, Generation: generation}
}

// wrote is an acknowledged write.
func wrote(content string, p catalog.Position, names ...string) history.Write {
	return history.Write{Names: names, Content: content, Outcome: history.Acknowledged, Position: p}
}

// said is an answer of fra1; "" is a 404. All of them come after each other unless a case says otherwise.
func said(name, content string, p catalog.Position) history.Answer {
	a := history.Answer{Edge: "fra1", Name: name, Status: http.StatusOK, Content: content, Position: p.String()}
	if content == "" {
		a.Status = http.StatusNotFound
	}
	return a
}

func last(a history.Answer) history.Answer {
	a.Last = true
	return a
}

func of(edge string, a history.Answer) history.Answer {
	a.Edge = edge
	return a
}

func during(began, ended int64, a history.Answer) history.Answer {
	a.Began, a.Ended = began, ended
	return a
}

func TestCheck(t *testing.T) {
	begun := wrote("a0", catalog.Position{}, "a")
	a1, a2 := wrote("a1", at(epoch, 3), "a"), wrote("a2", at(epoch, 5), "a")
	b1 := wrote("b1", at(epoch, 4), "b")
	pair1, pair2 := wrote("p1", at(epoch, 3), "x", "y"), wrote("p2", at(epoch, 6), "x", "y")
	unknown := history.Write{Names: []string{"a"}, Content: "a?"}
	refused := history.Write{Names: []string{"a"}, Content: "a-", Outcome: history.Refused}
	type answers []history.Answer
	type writes []history.Write
	for _, c := range []struct {
		name    string
		writes  writes
		answers answers
		want    []history.Kind
	}{
		{"nothing", nil, nil, nil},
		{"contents in order", writes{begun, a1, a2}, answers{said("a", "a0", at(epoch, 1)), said("a", "a1", at(epoch, 3)), said("a", "a2", at(epoch, 5))}, nil},
		{"newer than the position says", writes{begun, a1, a2}, answers{said("a", "a2", at(epoch, 2)), said("a", "a2", at(epoch, 5))}, nil},
		{"an edge may be behind another", writes{a1, a2}, answers{said("a", "a2", at(epoch, 5)), of("ams1", said("a", "a1", at(epoch, 4)))}, nil},
		{"404 before the name is there", writes{a1}, answers{said("a", "", at(epoch, 2)), said("a", "a1", at(epoch, 3))}, nil},
		{"404 of a name that nobody has written", nil, answers{said("z", "", at(epoch, 2))}, nil},
		{"an unknown outcome may show or not", writes{a1, unknown}, answers{said("a", "a1", at(epoch, 9)), said("a", "a?", at(epoch, 9)), last(said("a", "a?", at(epoch, 9)))}, nil},
		{"503 promises nothing", writes{begun}, answers{{Edge: "fra1", Name: "a", Status: http.StatusServiceUnavailable}}, nil},
		{"answers that overlap have no order", writes{a1, a2}, answers{during(1, 5, said("a", "a2", at(epoch, 5))), during(2, 6, said("a", "a1", at(epoch, 4)))}, nil},
		{"a pair, read across its write", writes{pair1, pair2}, answers{said("x", "p1", at(epoch, 3)), said("y", "p2", at(epoch, 5)), said("x", "p2", at(epoch, 5))}, nil},
		{"a restore loses writes", writes{a1, a2, wrote("b1", at(later, 4), "b")}, answers{said("a", "a2", at(epoch, 5)), said("a", "a1", at(later, 4)), last(said("b", "b1", at(later, 4)))}, nil},

		{"no position", writes{begun}, answers{{Edge: "fra1", Name: "a", Status: http.StatusOK, Content: "a0"}}, []history.Kind{history.NoPosition}},
		{"404 without a tree", writes{begun}, answers{{Edge: "fra1", Name: "a", Status: http.StatusNotFound}}, []history.Kind{history.NoPosition}},
		{"the position goes back", nil, answers{said("z", "", at(epoch, 5)), said("z", "", at(epoch, 4))}, []history.Kind{history.BackInTime}},
		{"an epoch comes back", nil, answers{said("z", "", at(epoch, 5)), said("z", "", at(later, 1)), said("z", "", at(epoch, 5))}, []history.Kind{history.BackInTime}},
		{"stale after newer", writes{a1, a2}, answers{said("a", "a2", at(epoch, 4)), said("a", "a1", at(epoch, 4))}, []history.Kind{history.StaleRead}},
		{"an unknown outcome that is undone", writes{a1, unknown}, answers{said("a", "a?", at(epoch, 4)), said("a", "a1", at(epoch, 4))}, []history.Kind{history.StaleRead}},
		{"lost at its position", writes{a1, a2}, answers{said("a", "a1", at(epoch, 5))}, []history.Kind{history.LostWrite}},
		{"lost at a position that the edge had shown", writes{a1, a2}, answers{said("z", "", at(epoch, 5)), said("a", "a1", at(epoch, 4))}, []history.Kind{history.LostWrite}},
		{"lost at the end", writes{a1, a2}, answers{last(said("a", "a1", at(epoch, 4)))}, []history.Kind{history.LostWrite}},
		{"the edge ends in the epoch before", writes{a1, wrote("b1", at(later, 1), "b")}, answers{last(said("a", "a1", at(epoch, 4)))}, []history.Kind{history.LostWrite}},
		{"404 at the position of the write", writes{b1}, answers{said("b", "", at(epoch, 4))}, []history.Kind{history.Forgotten}},
		{"404 of what the edge has shown", writes{b1}, answers{said("b", "b1", at(epoch, 3)), said("b", "", at(epoch, 3))}, []history.Kind{history.Forgotten}},
		{"404 of what was always there", writes{begun}, answers{said("a", "", at(later, 1))}, []history.Kind{history.Forgotten}},
		{"half a generation", writes{pair1, pair2}, answers{said("x", "p2", at(epoch, 5)), said("y", "p1", at(epoch, 5))}, []history.Kind{history.HalfGeneration}},
		{"half a generation, the other one", writes{pair1, pair2}, answers{said("y", "p2", at(epoch, 5)), said("x", "p1", at(epoch, 5))}, []history.Kind{history.HalfGeneration}},
		{"a content from nowhere", writes{a1}, answers{said("a", "zz", at(epoch, 3))}, []history.Kind{history.NeverWritten}},
		{"a refused write shows", writes{a1, refused}, answers{said("a", "a-", at(epoch, 3))}, []history.Kind{history.NeverWritten}},
		{"every edge is checked", writes{a1, a2}, answers{said("a", "a1", at(epoch, 5)), of("ams1", said("a", "a1", at(epoch, 5)))}, []history.Kind{history.LostWrite, history.LostWrite}},
	} {
		for i := range c.answers {
			if a := &c.answers[i]; a.Ended == 0 {
				a.Began, a.Ended = int64(10*i+10), int64(10*i+11)
			}
		}
		found := history.Check(c.writes, c.answers)
		same := len(found) == len(c.want)
		for i := range c.want {
			same = same && found[i].Kind == c.want[i]
		}
		if !same {
			t.Errorf("%s: it finds %v, want %q", c.name, found, c.want)
		}
	}
}

func TestRecording(t *testing.T) {
	var h history.History
	pair := h.Begin("p1", "x", "y")
	h.End(pair, history.Acknowledged, at(epoch, 7))
	h.End(h.Begin("a1", "a"), history.Refused, catalog.Position{})
	h.Begin("a2", "a")
	began := h.Now()
	h.Answered(history.Answer{Edge: "fra1", Name: "y", Status: http.StatusNotFound, Position: at(epoch, 7).String(), Began: began, Ended: h.Now()})
	h.Answered(history.Answer{Edge: "fra1", Name: "y", Status: http.StatusServiceUnavailable})
	if p, names := h.Newest(); p != at(epoch, 7) || len(names) != 2 {
		t.Errorf("the newest is %v %q", p, names)
	}
	if writes, answers := h.Counts(); writes != 1 || answers != 1 {
		t.Errorf("it counts %d and %d", writes, answers)
	}
	if found := h.Check(); len(found) != 1 || found[0].Kind != history.Forgotten || found[0].String() == "" {
		t.Errorf("it finds %v", found)
	}
}
