package resolver_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// verifiedBlock declares domains, each with its verified; "": without the line.
func verifiedBlock(slug string, verified map[string]string) catalog.ProjectConfig {
	p := block(slug)
	for _, name := range slices.Sorted(maps.Keys(verified)) {
		value := verified[name]
		d := block(slug, name).Domains[0]
		if value != "" {
			d.Verified = &value
		}
		p.Domains = append(p.Domains, d)
	}
	return p
}

func requiring(require string) catalog.FileChange {
	f := file("defaults.hcl")
	v := catalog.NewVerification()
	v.Require = require
	f.Declared.Defaults = &catalog.Defaults{Verification: &v}
	return f
}

// A domain that is pending or lost is refused in every form, whatever the defaults require; the most specific record
// decides alone.
func TestNotVerifiedIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	off := block("off", "off.example")
	lost := catalog.VerifiedLost
	off.Domains[0].Active, off.Domains[0].Verified = false, &lost
	apply(t, r, file("off.hcl", off), file("acme.hcl", verifiedBlock("acme", map[string]string{
		"plain.example": "", "day.example": "2026-11-24", "*.day.example": "2026-11-24", "pending.example": "pending",
		"lost.example": "lost", "new.day.example": "pending", "*.wild.example": "pending", "yes.wild.example": ""})))
	refused := map[string]catalog.NotVerified{"pending.example": catalog.DomainPending, "lost.example": catalog.DomainLost,
		"new.day.example": catalog.DomainPending, "any.wild.example": catalog.DomainPending, "off.example": catalog.DomainInactive}
	served := []string{"plain.example", "day.example", "other.day.example", "yes.wild.example"}
	for _, require := range []string{"", catalog.RequireNone, catalog.RequireProjectKeys} {
		if require != "" {
			apply(t, r, requiring(require))
		}
		for _, form := range []resolver.Form{resolver.Nested, resolver.Flat, resolver.FlatSecrets, resolver.Gateway, resolver.Tokens, resolver.NestedLabels} {
			for name, why := range refused {
				a := resolve(t, r, name, form)
				if a.Code != catalog.CodeDomainNotVerified || a.NotVerified != why || a.Data != "" || a.MayHaveCertificate(true) {
					t.Errorf("%s in form %d, require %q: %q %v %q", name, form, require, a.Code, a.NotVerified, a.Data)
				}
				if why.Refusal().Code != catalog.CodeDomainNotVerified || why.Why() == "" {
					t.Errorf("%v has no words", why)
				}
			}
			for _, name := range served {
				if a := resolve(t, r, name, form); a.Code != "" || a.NotVerified != 0 {
					t.Errorf("%s in form %d, require %q: %q", name, form, require, a.Code)
				}
			}
		}
		for name, why := range refused {
			if _, err := r.ProjectOfDomain(name); code(err) != catalog.CodeDomainNotVerified || err.Error() != why.Refusal().Error() {
				t.Errorf("mail by %s: %v", name, err)
			}
		}
	}
}

// A change of require is seen by the next call, also where an answer is cached, and so is a change of verified.
func TestRequireReachesCachedAnswers(t *testing.T) {
	r := open(t, resolver.Options{})
	p := verifiedBlock("acme", map[string]string{"plain.example": "", "*.wild.example": "", "day.example": "2026-11-24"})
	apply(t, r, file("acme.hcl", p))
	f := func(step string, plain, day catalog.NotVerified) {
		t.Helper()
		for range 2 { // from the store, and from the cache
			for name, want := range map[string]catalog.NotVerified{"plain.example": plain, "x.wild.example": plain, "day.example": day} {
				for _, form := range []resolver.Form{resolver.Nested, resolver.Gateway} {
					if a := resolve(t, r, name, form); a.NotVerified != want || (want == 0) != (a.Code == "") {
						t.Errorf("%s: %s in form %d is %v %q, want %v", step, name, form, a.NotVerified, a.Code, want)
					}
				}
			}
			r.Settle()
		}
		for _, name := range []string{"plain.example", "x.wild.example", "day.example"} {
			if !r.Cached(name) {
				t.Errorf("%s: %s is not cached", step, name)
			}
		}
	}
	f("without a block", 0, 0)
	apply(t, r, requiring(catalog.RequireAll))
	f("require all", catalog.DomainUnproven, 0)
	apply(t, r, requiring(catalog.RequireProjectKeys))
	f("require project-keys", 0, 0)
	apply(t, r, requiring(catalog.RequireAll))
	apply(t, r, file("defaults.hcl"))
	f("the block is gone", 0, 0)
	lost := catalog.VerifiedLost
	for i := range p.Domains {
		if p.Domains[i].Name == "day.example" {
			p.Domains[i].Verified = &lost
		}
	}
	apply(t, r, file("acme.hcl", p))
	f("lost", 0, catalog.DomainLost)
	if n := testing.AllocsPerRun(100, func() { resolve(t, r, "day.example", resolver.Nested) }); n > 1 && !testrig.Race { // resolve makes a []byte
		t.Errorf("a hit allocates %v times", n)
	}
}

// Answers about one domain have verified, and it counts for the ETag; lists and resolve do not have it.
func TestVerifiedInAnswers(t *testing.T) {
	t.Parallel()
	d := block("acme", "acme.example").Domains[0]
	tags := map[string]bool{rowjson.DomainETag(&d): true}
	if got := string(rowjson.AppendDomainRecord(nil, &d)); !strings.HasSuffix(got, `,"certificates":null,"verified":null}`) {
		t.Error(got)
	}
	for _, value := range []string{"pending", "lost", "2026-11-24"} {
		d.Verified = &value
		if got := string(rowjson.AppendDomainRecord(nil, &d)); !strings.HasSuffix(got, `,"certificates":null,"verified":"`+value+`"}`) {
			t.Error(got)
		}
		if got := string(rowjson.AppendDomain(nil, &d)); strings.Contains(got, "verified") {
			t.Error(got)
		}
		tags[rowjson.DomainETag(&d)] = true
	}
	if len(tags) != 4 {
		t.Errorf("%d ETags of 4 contents", len(tags))
	}
}

// What a proof changes is domain.verify or domain.lost in the audit trail, with the reason; all else keeps its action.
func TestProofsInTheTrail(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	state := map[string]string{"a.example": "pending"}
	apply(t, r, file("acme.hcl", verifiedBlock("acme", state)))
	by := func(door catalog.Door, reason string) {
		t.Helper()
		f := file("acme.hcl", verifiedBlock("acme", state))
		f.By = &catalog.Author{Door: door, Reason: reason}
		apply(t, r, f)
	}
	state["a.example"] = "2026-11-24"
	by(catalog.DoorDNS, "")
	state["a.example"] = "lost"
	by(catalog.DoorDNS, "no record with the token for 72h")
	state["a.example"] = "2026-11-27"
	by(catalog.DoorDNS, "")
	state["a.example"] = ""
	by(catalog.DoorAPI, "")
	state["a.example"], state["b.example"] = "pending", "pending"
	by(catalog.DoorFile, "")
	delete(state, "b.example")
	by(catalog.DoorDNS, "")
	var got []string
	for _, e := range trail(t, r) {
		if e.Action == catalog.AuditLoad {
			continue
		}
		line := string(e.Door) + " " + e.Action + " " + e.Object
		for _, c := range e.Changes {
			if c.Field == "verified" || c.Field == catalog.AuditReason {
				line += " " + c.Field + ":" + textOf(c.Before) + ">" + textOf(c.After)
			}
		}
		if e.Actor != "" || e.Key != "" {
			t.Errorf("%s has an author", line)
		}
		got = append(got, line)
	}
	want := []string{
		"dns domain.verify a.example verified:pending>2026-11-24",
		"dns domain.lost a.example verified:2026-11-24>lost reason:>no record with the token for 72h",
		"dns domain.verify a.example verified:lost>2026-11-27",
		"api domain.update a.example verified:2026-11-27>",
		"file domain.update a.example verified:>pending",
		"file domain.create b.example verified:>pending",
		"dns domain.delete b.example verified:pending>",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the trail has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, action := range []string{catalog.AuditVerify, catalog.AuditLost} {
		if !catalog.IsAuditAction(action) {
			t.Errorf("%s is not an action", action)
		}
	}
}

// A change of the block is defaults.update, with the values that differ.
func TestVerificationInTheTrail(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, file("acme.hcl", block("acme", "acme.example")))
	apply(t, r, requiring(catalog.RequireAll))
	apply(t, r, requiring(catalog.RequireAll))
	apply(t, r, requiring(catalog.RequireNone))
	apply(t, r, file("defaults.hcl"))
	entries := trail(t, r)
	entries = entries[len(entries)-3:]
	require := func(before, after any) catalog.FieldChange {
		return catalog.FieldChange{Field: "verification.require", Before: before, After: after}
	}
	for i, want := range []catalog.FieldChange{require(nil, "all"), require("all", "none"), require("none", nil)} {
		e := entries[i]
		if e.Action != "defaults.update" || !slices.Contains(e.Changes, want) || i == 1 && len(e.Changes) != 1 {
			t.Errorf("entry %d is %s with %+v, want %+v", i, e.Action, e.Changes, want)
		}
	}
}

// TestProofsAfterACrash: the store loses the change of a proof, which the trail has: the next look at the files adds no
// second entry, and one that differs is told from what the trail has.
func TestProofsAfterACrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	state := map[string]string{"a.example": "2026-11-24"}
	start := func() *resolver.Resolver {
		r, err := resolver.Open(resolver.Options{DataDir: "data", CacheBytes: testCacheBytes, Logger: quiet, Now: fixed(noon), Disk: onDisk(mem)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	stop := func(r *resolver.Resolver) {
		t.Helper()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	look := func() catalog.FileChange { return file("acme.hcl", verifiedBlock("acme", state)) }
	r := start()
	apply(t, r, look())
	stop(r)

	r = start()
	state["a.example"] = "lost"
	f := look()
	f.By = &catalog.Author{Door: catalog.DoorDNS, RequestID: "r1", Reason: "no server has the record"}
	apply(t, r, f)
	image := mem.CrashClone(vfs.CrashCloneCfg{})
	stop(r)
	mem = image

	r = start()
	if d, err := r.DomainNamed("a.example"); err != nil || d.Verified == nil || *d.Verified != "2026-11-24" {
		t.Fatalf("the store has not lost the change: %+v, %v", d, err)
	}
	apply(t, r, look())
	state["a.example"] = "pending"
	apply(t, r, look())
	var got []string
	for _, e := range trail(t, r) {
		if e.Action == catalog.AuditLoad {
			continue
		}
		line := string(e.Door) + " " + e.Action
		for _, c := range e.Changes {
			line += " " + c.Field + ":" + textOf(c.Before) + ">" + textOf(c.After)
		}
		got = append(got, line)
	}
	if text := strings.Join(got, "\n"); text != "dns domain.lost verified:2026-11-24>lost reason:>no server has the record\nfile domain.update verified:lost>pending" {
		t.Errorf("the trail has\n%s", text)
	}
	stop(r)
}

func textOf(v any) string {
	text, _ := v.(string)
	return text
}
