package dcv_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A model is what a sequence has done so far, in the simplest terms: from it follows which decisions are allowed.
type model struct {
	ours   bool        // the service wrote the present value
	seen   bool        // the service has seen the proof since the files have the present value
	misses []time.Time // that count, since the last hit
}

// A sequence is a subject under random faults, edits, crashes and times.
type sequence struct {
	*story
	rand   *rand.Rand
	model  model
	fired  map[string]int
	failed bool
}

// TestSequences: in random sequences of faults no state changes without a definite answer, nothing is written that people
// or too few misses forbid, and every proof is taken.
func TestSequences(t *testing.T) {
	t.Parallel()
	fired, sequences := map[string]int{}, testrig.Size(t, 10000, testrig.Part(1500))
	for seed := range uint64(sequences) {
		s := &sequence{story: newStory(t, "", policy), rand: rand.New(rand.NewPCG(seed, 1)), fired: fired}
		s.person()
		for step := range 40 {
			if s.step(); s.failed {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
	testrig.Figure(t, "%d sequences of 40 checks: %v", sequences, fired)
	for _, what := range []string{"hit", "miss", "undecided", "write day", "write lost", "note failing", "note proven",
		"note lost", "refused", "killed"} {
		if fired[what] < sequences/20 {
			t.Errorf("%q happened %d times: the sequences are too tame", what, fired[what])
		}
	}
}

func (s *sequence) oneOf(texts ...string) string { return texts[s.rand.IntN(len(texts))] }

// person lets a person write a value, and perhaps another policy.
func (s *sequence) person() {
	value := s.oneOf("", catalog.VerifiedPending, catalog.VerifiedPending, catalog.VerifiedLost, "2026-10-01", "2026-10-02")
	if value != s.subject.Verified {
		s.subject.Verified, s.model = value, model{}
	}
	before := s.policy.Require == catalog.RequireAll
	s.policy = []dcv.Policy{policy, policy, report, all}[s.rand.IntN(4)]
	s.policy.Grace = []time.Duration{72 * time.Hour, time.Hour, 10 * time.Second}[s.rand.IntN(3)]
	if s.subject.Verified == "" && before != (s.policy.Require == catalog.RequireAll) {
		s.model = model{}
	}
	s.state = dcv.Follow(s.state, s.subject, s.policy, s.now)
}

func (s *sequence) step() {
	if s.rand.IntN(15) == 0 {
		s.person()
	}
	if s.rand.IntN(40) == 0 {
		s.restart()
	}
	s.now = s.now.Add([]time.Duration{0, time.Second, 4 * time.Second, 20 * time.Minute, time.Hour, 25 * time.Hour,
		s.state.NextAt.Sub(s.now)}[s.rand.IntN(7)])
	f, class := s.facts()
	s.fired[class]++
	before := s.state
	var d dcv.Decision
	s.state, d = dcv.Decide(before, s.subject, s.policy, f, s.now)
	s.judge(class, before, d)
	s.axes(&f, before)
	if d.Write != "" {
		s.write(d.Write)
	}
	if s.rand.IntN(10) == 0 {
		s.shown()
	}
	if next := s.state.NextAt.Sub(s.now); next < time.Second || next > 27*time.Hour {
		s.bad("next check after %v", next)
	}
}

func (s *sequence) bad(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Errorf(format+" (%q, %+v, %+v)", append(args, s.subject.Verified, s.model, s.state.Ownership)...)
}

// facts draws what servers answer about each way, and says what that amounts to.
func (s *sequence) facts() (dcv.Facts, string) {
	a := s.oneOf("203.0.113.4", "192.0.2.7", "-", dcv.ServFail, dcv.TimedOut)
	f := pointed(s.now, a, s.oneOf("-", "2001:db8::1", dcv.ServFail))
	f.TLS = []dcv.TLS{{}, {Error: dcv.TimedOut}, {Refused: true}, {Connected: true, NotAfter: s.now.Add(1000 * time.Hour)}}[s.rand.IntN(4)]
	class := "miss"
	mood := s.oneOf("no", "no", "yes", "faults", "any")
	servers := 1 + s.rand.IntN(3)
	for i, w := range dcv.Ways(s.subject, s.policy) {
		finding := dcv.Finding{Type: w.Type, Name: w.Name}
		with, without := 0, 0
		for range servers {
			says := "no"
			switch {
			case mood == "any", mood == "faults" && i == 0:
				says = s.oneOf("yes", "no", "no", dcv.TimedOut, dcv.Lame, dcv.ServFail, dcv.Refused)
			case mood == "yes" && i == 0:
				says = "yes"
			}
			var a dcv.Answer
			switch says {
			case "yes":
				with++
				a.Values = []string{"token=" + w.Token}
				if w.Type == "CNAME" {
					a.Values = []string{w.Target}
				}
			case "no":
				without++
				a.Values = []string{s.oneOf("token=", "other.example", "token=bbbbbbbbbbbbbbbbbbbbbbbbbb")}[:s.rand.IntN(2)]
			default:
				a.Error = says
			}
			finding.Answers = append(finding.Answers, a)
		}
		switch {
		case with > 0 && without == 0:
			class = "hit"
		case without < servers && class == "miss":
			class = "undecided"
		}
		f.Proofs = append(f.Proofs, finding)
	}
	return f, class
}

// judge checks a decision about ownership against the model.
func (s *sequence) judge(class string, before dcv.State, d dcv.Decision) {
	from, to := before.Ownership.State, s.state.Ownership.State
	dated := len(s.subject.Verified) == len("2026-10-01")
	waits := s.subject.Verified == catalog.VerifiedPending || s.subject.Verified == "" && s.policy.Require == catalog.RequireAll ||
		s.subject.Verified == catalog.VerifiedLost && s.model.ours
	if from == dcv.Trusted {
		class = "undecided"
	}
	switch class {
	case "undecided":
		if from != to || d != (dcv.Decision{}) || s.state.Ownership.Misses != before.Ownership.Misses {
			s.bad("%s to %s without a definite answer: %+v", from, to, d)
		}
	case "hit":
		s.model.misses = nil
		s.model.seen = s.model.seen || dated
		if waits != (d.Write == s.now.Format(time.DateOnly)) || !waits && d.Write != "" {
			s.bad("found in %s: %+v", from, d)
		}
		if dated && to != dcv.Proven || !dated && from != to || (d.Noted != "") != (from != to) {
			s.bad("found: %s to %s, %+v", from, to, d)
		}
	case "miss":
		s.missed(from, to, d)
	}
	if d.Write != "" {
		s.fired["write "+map[bool]string{true: "lost", false: "day"}[d.Write == catalog.VerifiedLost]]++
	}
	if d.Noted != "" {
		s.fired["note "+d.Noted]++
	}
}

func (s *sequence) missed(from, to string, d dcv.Decision) {
	dated := len(s.subject.Verified) == len("2026-10-01")
	gap := min(time.Hour, s.policy.Grace/3)
	if n := len(s.model.misses); dated && (n == 0 || s.now.Sub(s.model.misses[n-1]) >= gap) {
		s.model.misses = append(s.model.misses, s.now)
	}
	overdue := dated && s.model.seen && len(s.model.misses) >= 3 && s.now.Sub(s.model.misses[0]) >= s.policy.Grace
	late := from == dcv.Lost && dated // under "report"; the grace may be longer by now
	switch {
	case d.Write != "" && (d.Write != catalog.VerifiedLost || !s.policy.Block || !overdue && !late):
		s.bad("missed in %s: %+v", from, d)
	case from == dcv.Proven && (to != dcv.Failing || d.Noted != dcv.Failing):
		s.bad("missed in proven: %s, %+v", to, d)
	case from == dcv.Failing && overdue && d.Write == "" && d.Noted != dcv.Lost:
		s.bad("overdue and not lost: %+v", d)
	case d.Noted == dcv.Lost && (!overdue || s.policy.Block), from != dcv.Proven && from != to && d.Noted != dcv.Lost:
		s.bad("missed: %s to %s, %+v", from, to, d)
	}
}

// axes checks that pointing and certificate moved for a definite answer only.
func (s *sequence) axes(f *dcv.Facts, before dcv.State) {
	definite := false
	for _, finding := range f.Pointing.Findings {
		definite = definite || finding.Answers[0].Error == ""
	}
	if !definite && before.Pointing.State != s.state.Pointing.State {
		s.bad("pointing moved to %s", s.state.Pointing.State)
	}
	was, is := before.Certificate.State, s.state.Certificate.State
	here := s.state.Pointing.State == dcv.Here || s.state.Pointing.State == ""
	if !f.TLS.Connected && !f.TLS.Refused && here && was != is {
		s.bad("the certificate moved from %s to %s", was, is)
	}
}

// shown checks that what is shown is what is known.
func (s *sequence) shown() {
	v, o := dcv.Show(s.subject, s.state, s.policy), s.state.Ownership
	ready := (o.State == dcv.Trusted || o.State == dcv.Proven) && s.state.Pointing.State == dcv.Here &&
		s.state.Certificate.State == dcv.Good
	if v.Ownership.State != o.State || v.Ready != ready || v.CheckedAt == nil || v.NextCheckAt == nil || len(v.Records) < 2 {
		s.bad("shown as %+v", v)
	}
}

// write lets the write of a value succeed, be refused, or be interrupted.
func (s *sequence) write(value string) {
	arrives := s.rand.IntN(2) == 0
	killed := s.rand.IntN(3) == 0
	if arrives {
		s.subject.Verified = value
		s.model = model{ours: true, seen: value != catalog.VerifiedLost}
	} else {
		s.fired["refused"]++
	}
	if killed {
		s.fired["killed"]++
		s.restart()
	} else {
		s.state = dcv.Settle(s.state, arrives, s.now)
	}
	if arrives {
		want := map[bool]string{true: dcv.Lost, false: dcv.Proven}[value == catalog.VerifiedLost]
		if s.state.Ownership.State != want || s.state.Ownership.Wrote != value {
			s.bad("after writing %s", value)
		}
	} else if s.state.Ownership.Writing != "" {
		s.bad("a refused write is not forgotten")
	}
}

// restart keeps what is kept, and looks at the files again.
func (s *sequence) restart() {
	b, err := s.state.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	st, err := dcv.DecodeState(b)
	if err != nil {
		s.t.Fatal(err)
	}
	s.state = dcv.Settle(dcv.Follow(st, s.subject, s.policy, s.now), false, s.now)
}
