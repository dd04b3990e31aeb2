package dcv_test

import (
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A leftover is a record that somebody has not taken out of the DNS.
type leftover struct{ kind, name, value string }

// answering are the facts of a check of s where servers answer with the records. With anywhere they give the values at
// each name that is asked for, as the owner of its zone may have them do.
func answering(s dcv.Subject, now time.Time, records []leftover, anywhere bool) dcv.Facts {
	f := dcv.Facts{At: now}
	for _, w := range dcv.Ways(s, policy) {
		finding := dcv.Finding{Type: w.Type, Name: w.Name, Answers: []dcv.Answer{{Server: "ns1.acme.example", At: now}}}
		for _, r := range records {
			if r.kind == w.Type && (anywhere || r.name == w.Name) {
				finding.Answers[0].Values = append(finding.Answers[0].Values, r.value)
			}
		}
		f.Proofs = append(f.Proofs, finding)
	}
	return f
}

// TestTakeOver: a record that was left over proves nothing for a later project or name, whatever became of the old one.
func TestTakeOver(t *testing.T) {
	globex, again := catalog.DeriveProjectUUID("globex"), catalog.NewUUID()
	fates := map[string]func(dcv.Subject) dcv.Subject{
		"deleted":         func(s dcv.Subject) dcv.Subject { s.Project = globex; return s }, // and added to another project
		"made again":      func(s dcv.Subject) dcv.Subject { s.Project = again; return s },
		"slug used again": func(s dcv.Subject) dcv.Subject { s.Reused = true; return s },    // in a file: the uuid is the same
		"moved project":   func(s dcv.Subject) dcv.Subject { s.Project = globex; return s }, // with its state
		"renamed": func(s dcv.Subject) dcv.Subject {
			s.Name = map[bool]string{true: "*.", false: ""}[s.Name[0] == '*'] + "shop.globex.example"
			return s
		},
	}
	cells := 0
	for fate, become := range fates {
		for _, kind := range []string{"TXT", "CNAME"} {
			for _, scope := range []dcv.Scope{dcv.ScopeExact, dcv.ScopeWildcard, dcv.ScopeDomain} {
				before := shop(catalog.VerifiedPending)
				if scope == dcv.ScopeWildcard {
					before.Name = "*.shop.acme.example"
				}
				record := leftoverOf(before, kind, scope)
				old, taken := proven(t, before, record)
				if possible := kind == "TXT" || scope == dcv.ScopeExact; taken != possible {
					t.Fatalf("%s %s: the owner's own proof: %v", kind, scope, taken)
				}
				cells++
				after := become(before)
				if fate == "deleted" || fate == "slug used again" {
					old = dcv.State{}
				}
				for i := range 400 { // a week and more, by the timetable
					f := answering(after, start.Add(time.Hour), []leftover{record}, i%2 == 1)
					st, d := dcv.Decide(old, after, policy, f, start.Add(time.Duration(i+2)*time.Hour))
					if old = st; d != (dcv.Decision{}) || st.Ownership.State != dcv.Pending {
						t.Errorf("%s, %s %s: %+v, %+v", fate, kind, scope, d, st.Ownership)
						break
					}
				}
			}
		}
	}
	testrig.Figure(t, "%d ways to take a domain over by a record left over, none of them works", cells)
	if cells != 30 {
		t.Errorf("%d cells", cells)
	}
}

// leftoverOf is the record of a kind that has the token of a scope. Only TXT records are ways of all scopes.
func leftoverOf(s dcv.Subject, kind string, scope dcv.Scope) leftover {
	for _, w := range dcv.Ways(s, policy) {
		switch {
		case w.Scope != scope:
		case kind == "CNAME":
			return leftover{kind, "shop.acme.example", w.Token + ".edge.example.net"}
		case w.Type == kind:
			return leftover{kind, w.Name, "token=" + w.Token + " expiry=never"}
		}
	}
	panic("no such way")
}

// proven lets the owner prove s with the record, and returns the state after that.
func proven(t *testing.T, s dcv.Subject, record leftover) (dcv.State, bool) {
	t.Helper()
	st, d := dcv.Decide(dcv.State{}, s, policy, answering(s, start, []leftover{record}, false), start)
	return dcv.Settle(st, d.Write != "", start), d.Write != ""
}

// TestDomainScope: the record of a domain proves the names below it, for the same project and nobody else.
func TestDomainScope(t *testing.T) {
	record := leftover{"TXT", "_fingerpost-domain-challenge.acme.example", "token=" + dcv.Token(acme, dcv.ScopeDomain, "acme.example")}
	for name, want := range map[string]bool{"acme.example": true, "*.acme.example": true, "a.b.acme.example": true,
		"*.a.acme.example": true, "xacme.example": false, "example": false, "acme.example.net": false} {
		s := dcv.Subject{Project: acme, Name: name, Verified: catalog.VerifiedPending}
		if _, got := proven(t, s, record); got != want {
			t.Errorf("%s: %v", name, got)
		}
		s.Project = catalog.DeriveProjectUUID("globex")
		if _, got := proven(t, s, record); got {
			t.Errorf("%s of another project is proven", name)
		}
	}
}

// TestBareCNAME: what leads to the target proves nothing without the token.
func TestBareCNAME(t *testing.T) {
	token := dcv.Token(acme, dcv.ScopeExact, "shop.acme.example")
	for value, want := range map[string]bool{
		token + ".edge.example.net": true, token + ".Edge.Example.NET.": true,
		"edge.example.net": false, "x.edge.example.net": false, token + ".other.example": false, token: false,
		"x." + token + ".edge.example.net": false, token + ".edge.example.net.evil.example": false,
	} {
		if _, got := proven(t, shop(catalog.VerifiedPending), leftover{"CNAME", "shop.acme.example", value}); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}
