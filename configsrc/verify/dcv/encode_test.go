package dcv_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// TestEncode: a state comes back as it was, and another version's is refused.
func TestEncode(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes", dcv.TimedOut)
	full := s.state
	full.Last.Pointing = pointed(start, "203.0.113.4", "2001:db8::2").Pointing
	full.Last.TLS = dcv.TLS{Tried: []netip.Addr{netip.MustParseAddr("203.0.113.4")}, Connected: true, Issuer: "R11", NotAfter: start}
	full.Last.Zone = dcv.Zone{Apex: "acme.example", CAA: []string{";"}, CAAKnown: true, NegativeUntil: start}
	for _, st := range []dcv.State{{}, s.state, full} {
		b, err := st.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := dcv.DecodeState(b); err != nil || !reflect.DeepEqual(back, st) {
			t.Errorf("%v\n%+v\nwant\n%+v", err, back, st)
		}
	}
	b, _ := full.Encode()
	for _, bad := range [][]byte{nil, {}, {1}, append([]byte{2}, b[1:]...), b[:len(b)-1], b[1:]} {
		if st, err := dcv.DecodeState(bad); err == nil || !reflect.DeepEqual(st, dcv.State{}) {
			t.Errorf("%.40q: %v, %+v", bad, err, st)
		}
	}
}

// TestStateIsBounded: what hostile servers answer is decided on in full and kept in part. The proof is kept, and shown.
func TestStateIsBounded(t *testing.T) {
	s := shop(catalog.VerifiedPending)
	f := pointed(start, "203.0.113.4", "-")
	f.Proofs = facts(s, policy, start, 0, answers{"yes", "yes"}).Proofs
	huge := strings.Repeat("x\xff", 32<<10)
	flood := func(values *[]string) {
		for range 30 {
			*values = append([]string{huge}, *values...)
		}
	}
	for i := range f.Proofs {
		for j := range f.Proofs[i].Answers {
			flood(&f.Proofs[i].Answers[j].Values)
		}
		for range 30 {
			f.Proofs[i].Answers = append(f.Proofs[i].Answers, f.Proofs[i].Answers[0])
		}
	}
	for range 100 {
		f.Pointing.Findings = append(f.Pointing.Findings, f.Proofs[2])
		f.Pointing.Addresses = append(f.Pointing.Addresses, f.Pointing.Addresses...)[:min(1000, 2*len(f.Pointing.Addresses))]
	}
	flood(&f.Zone.NameServers)
	flood(&f.Zone.Doubled)
	flood(&f.Zone.CAA)
	flood(&f.Zone.Resolver.Values)
	f.TLS.Issuer, f.TLS.Error, f.Zone.Resolver.Error, f.Pointing.TargetError = huge, huge, huge, huge
	f.Proofs[3].Error = huge

	st, d := dcv.Decide(dcv.State{}, s, policy, f, start)
	if d.Write == "" {
		t.Errorf("%+v", st.Ownership)
	}
	b, err := st.Encode()
	if err != nil || len(b) > 128<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if again, err := dcv.DecodeState(b); err != nil || !reflect.DeepEqual(again, st) {
		t.Errorf("not the same after a restart: %v", err)
	}
	if !bytes.Contains(b, []byte("token=472jyvfzitf2yjjkzwbfndvlst")) {
		t.Error("the proof is cut away")
	}
	if len(f.Proofs[0].Answers) < 30 || len(f.Proofs[0].Answers[0].Values[0]) < 60000 {
		t.Error("the caller's facts are changed")
	}
}
