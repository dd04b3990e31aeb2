package dcv_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

var (
	start  = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	policy = dcv.PolicyOf(&catalog.Verification{Require: catalog.RequireProjectKeys, OnLost: catalog.OnLostBlock,
		Grace: 72 * time.Hour, Targets: []string{"edge.example.net", "203.0.113.0/24"}})
	report = func() dcv.Policy { p := policy; p.Block = false; return p }()
	all    = func() dcv.Policy { p := policy; p.Require = catalog.RequireAll; return p }()
)

func shop(verified string) dcv.Subject {
	return dcv.Subject{Project: acme, Name: "shop.acme.example", Verified: verified}
}

// answers says what each server of every zone answers: "yes" with the proof, "no" without, else an error.
type answers []string

// facts are those of a check of s at which the servers give the answers about one way; the other ways are answered "no",
// with the errors of the servers that have one.
func facts(s dcv.Subject, p dcv.Policy, now time.Time, way int, answers answers) dcv.Facts {
	f := dcv.Facts{At: now}
	for i, w := range dcv.Ways(s, p) {
		if slices.ContainsFunc(f.Proofs, func(have dcv.Finding) bool { return have.Type == w.Type && have.Name == w.Name }) {
			continue
		}
		finding := dcv.Finding{Type: w.Type, Name: w.Name}
		for n, says := range answers {
			a := dcv.Answer{Server: fmt.Sprintf("ns%d.acme.example", n+1), At: now}
			switch {
			case says == "yes" && i == way && w.Type == "TXT":
				a.Values = []string{"v=spf1 -all", "token=" + w.Token + " expiry=never"}
			case says == "yes" && i == way:
				a.Values = []string{w.Target}
			case says == "yes" || says == "no":
				if w.Type == "TXT" && n%2 == 1 {
					a.Values = []string{"v=spf1 -all"} // without the proof, not without records
				}
			default:
				a.Error = says
			}
			finding.Answers = append(finding.Answers, a)
		}
		f.Proofs = append(f.Proofs, finding)
	}
	return f
}

const (
	here      = "203.0.113.4"
	elsewhere = "192.0.2.7"
)

// served adds to facts that the subject leads to an address, with a good certificate if that is here.
func served(f dcv.Facts, leads string, now time.Time) dcv.Facts {
	f.Pointing = pointed(now, leads, "-").Pointing
	f.TLS = dcv.TLS{Connected: true, NotAfter: now.Add(60 * 24 * time.Hour)}
	return f
}

// A story is a subject with its state and a clock. Its writes succeed unless refuse is set.
type story struct {
	t       *testing.T
	state   dcv.State
	subject dcv.Subject
	policy  dcv.Policy
	now     time.Time
	refuse  bool
	leads   string // its address; "": not known. At one that is here it has a good certificate
}

func newStory(t *testing.T, verified string, p dcv.Policy) *story {
	return &story{t: t, subject: shop(verified), policy: p, now: start}
}

// check is a check after a time, with the answers of servers about the first way.
func (s *story) check(after time.Duration, says ...string) dcv.Decision {
	s.t.Helper()
	s.now = s.now.Add(after)
	var d dcv.Decision
	f := facts(s.subject, s.policy, s.now, 0, says)
	if s.leads != "" {
		f = served(f, s.leads, s.now)
	}
	s.state, d = dcv.Decide(s.state, s.subject, s.policy, f, s.now)
	if d.Write != "" {
		if d.From != s.subject.Verified || d.Reason == "" || d.Noted != "" {
			s.t.Errorf("decision %+v at %q", d, s.subject.Verified)
		}
		if !s.refuse {
			s.subject.Verified = d.Write
		}
		s.state = dcv.Settle(s.state, !s.refuse, s.now)
	}
	return d
}

// is checks the state of ownership and the files.
func (s *story) is(ownership, verified string) {
	s.t.Helper()
	if o := s.state.Ownership; o.State != ownership || s.subject.Verified != verified {
		s.t.Errorf("%s with %q in the files, want %s with %q", o.State, s.subject.Verified, ownership, verified)
	}
}
