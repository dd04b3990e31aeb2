package dcv

import (
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// Show returns what people and programs see of s, of which st is known. It goes by the files as s has them, also where
// they have changed since the latest check.
func Show(s Subject, st State, p Policy) catalog.VerificationView {
	st = Follow(st, s, p, time.Time{})
	o, pt, c := &st.Ownership, &st.Pointing, &st.Certificate
	v := catalog.VerificationView{
		Ownership:   catalog.OwnershipView{State: o.State, Since: when(o.Since), Spreading: o.Spreading, Misses: o.Misses},
		Pointing:    catalog.PointingView{State: known(pt.State), Since: when(pt.Since), Addresses: []string{}},
		Certificate: catalog.CertificateView{State: known(c.State), Since: when(c.Since), ExpiresAt: when(c.ExpiresAt)},
		Records:     Records(s, p, st.Last),
		Hints:       hints(&st, p),
		CheckedAt:   when(st.CheckedAt),
		NextCheckAt: when(st.NextAt),
	}
	for _, addr := range pt.Addresses {
		v.Pointing.Addresses = append(v.Pointing.Addresses, addr.String())
	}
	if c.Issuer != "" {
		v.Certificate.Issuer = &c.Issuer
	}
	v.Ready = st.ready()
	return v
}

func known(state string) string {
	if state == "" {
		return Unknown
	}
	return state
}

func when(t time.Time) *catalog.JSONMoment {
	if t.IsZero() {
		return nil
	}
	return &catalog.JSONMoment{Time: t}
}

// PurposeOwnership is that of the records that prove a domain.
const PurposeOwnership = "ownership"

// Records returns the records to set for s: those that prove it, of which one is enough, then those that make it point
// here. f is what is known, for the addresses of targets and for Found; the zero Facts do.
func Records(s Subject, p Policy, f Facts) []catalog.RecordView {
	records := []catalog.RecordView{}
	for i, w := range Ways(s, p) {
		if w.Type == "CNAME" && isApex(w.Name, &f) {
			continue // DNS has no CNAME at the top of a zone
		}
		records = append(records, catalog.RecordView{Purpose: PurposeOwnership, Type: w.Type, Name: w.Name,
			Host: hostOf(w.Name, &f), Value: w.value(), Alternative: i > 0, Found: found(f.Proofs, w.Type, w.Name, f.At)})
	}
	for i, r := range pointingRecords(s, p, &f) {
		asked := r.name
		if r.kind != "CNAME" || strings.HasPrefix(r.name, "*.") {
			asked = lastName(&f, r.kind)
		}
		records = append(records, catalog.RecordView{Purpose: "pointing", Type: r.kind, Name: r.name,
			Host: hostOf(r.name, &f), Value: r.value, Alternative: i > 0 && r.kind == "CNAME",
			Found: found(f.Pointing.Findings, r.kind, asked, f.At)})
	}
	return records
}

// lastName is the name at which records of a type were found on the way to the addresses.
func lastName(f *Facts, kind string) (name string) {
	for i := range f.Pointing.Findings {
		if f.Pointing.Findings[i].Type == kind {
			return f.Pointing.Findings[i].Name
		}
	}
	return f.Pointing.Name
}

// value is the value of w's record as it is set.
func (w *Way) value() string {
	if w.Type == "CNAME" {
		return w.Target
	}
	return "token=" + w.Token + " expiry=never"
}

// line is w's record as a line of a zone file.
func (w *Way) line() string { return record{w.Name, w.Type, w.value()}.line() }

// A record is a record to set.
type record struct{ name, kind, value string }

// line is r as a line of a zone file.
func (r record) line() string {
	value := r.value
	switch r.kind {
	case "TXT":
		value = `"` + value + `"`
	case "CNAME", "ALIAS", "NS":
		value += "."
	}
	return r.name + ". " + r.kind + " " + value
}

// pointingRecords returns the records that make s point here: a CNAME where DNS allows one, else addresses.
func pointingRecords(s Subject, p Policy, f *Facts) (records []record) {
	if !isApex(s.Name, f) {
		for _, host := range p.Hosts {
			records = append(records, record{s.Name, "CNAME", host})
		}
		if records != nil {
			return records
		}
	}
	return addressRecords(s.Name, p, f)
}

// addressRecords returns the records that give a name the addresses of targets; an ALIAS, which some providers have, where
// none is known.
func addressRecords(name string, p Policy, f *Facts) (records []record) {
	addresses := slices.Clone(f.Pointing.TargetAddresses)
	if len(addresses) == 0 {
		for _, prefix := range p.Prefixes {
			if prefix.IsSingleIP() {
				addresses = append(addresses, prefix.Addr())
			}
		}
	}
	for _, addr := range cut(addresses, maxValues) {
		kind := "A"
		if addr.Is6() {
			kind = "AAAA"
		}
		records = append(records, record{name, kind, addr.String()})
	}
	if records == nil {
		for _, host := range p.Hosts {
			records = append(records, record{name, "ALIAS", host})
		}
	}
	return records
}

// isApex reports whether name is the top of a zone: as f has found, or for all that is known.
func isApex(name string, f *Facts) bool {
	if f.Zone.Apex != "" {
		return f.Zone.Apex == name
	}
	return hostname.RegistrableDomain(name) == name
}

// hostOf returns a record's name within its zone, which is the one that f has found, or the registrable domain.
func hostOf(name string, f *Facts) string {
	zone := f.Zone.Apex
	if zone == "" || name != zone && !strings.HasSuffix(name, "."+zone) {
		zone = hostname.RegistrableDomain(strings.TrimPrefix(name, "*."))
	}
	switch host, below := strings.CutSuffix(name, "."+zone); {
	case name == zone:
		return "@"
	case below && zone != "":
		return host
	}
	return name
}

// found returns what each server said about a record.
func found(findings []Finding, kind, name string, at time.Time) []catalog.FoundView {
	views := []catalog.FoundView{}
	f := find(findings, kind, name)
	if f == nil {
		return views
	}
	if f.Error != "" {
		views = append(views, catalog.FoundView{Values: []string{}, Error: &f.Error, At: catalog.JSONMoment{Time: at}})
	}
	for i := range f.Answers {
		a := &f.Answers[i]
		view := catalog.FoundView{Server: a.Server, Values: append([]string{}, a.Values...),
			At: catalog.JSONMoment{Time: a.At}}
		if a.Error != "" {
			view.Error = &a.Error
		}
		views = append(views, view)
	}
	return views
}
