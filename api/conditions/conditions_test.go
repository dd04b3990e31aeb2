package conditions_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/conditions"
)

var at = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// everything is a state in which nothing is well.
func everything() *conditions.State {
	gap := []conditions.Gap{{Found: at.Add(-time.Hour), Reason: "a table is missing"}}
	return &conditions.State{Time: at, NotReady: true, Unaudited: true, DiskUsed: 0.95, Certificate: at.Add(time.Hour),
		Secrets: []conditions.Secret{{ProjectID: 7, Project: "acme", Field: "jwtSecret", Message: "a file is missing"}, {Project: "globex", Field: "jwtSecret", Works: true},
			{Project: "initech", Field: conditions.KeySetField}},
		Keys: []conditions.Key{{Name: "ci", Ends: at.Add(time.Hour)}}, AuditGaps: gap,
		Files: conditions.Files{Errors: 1, Warnings: 1, Error: "no folder", LowDisk: "1 kB", Held: new(conditions.Held)},
		Git:   conditions.Git{Errors: []string{"no route"}, Behind: 2, Overruled: 1}, MailRoom: "1 kB", MailWaits: time.Hour,
		Stopped: []conditions.Stopped{{Project: 7, Slug: "acme", Name: "Acme", Code: "SMTP_AUTH_FAILED", Why: "it is refused"}}, MoreStopped: 1,
		MailGaps: gap, Cluster: "not connected",
		Edges: []conditions.Edge{{Name: "a"}, {Name: "b", Version: "1", BeatAgeMS: 1}, {Name: "c", Version: "1", Ready: true,
			LagMS: 60_000}, {Name: "d", Version: "1", Ready: true, Current: true, Problem: "old"}},
		Domains:     []conditions.Domain{{Name: "a.example", State: "lost"}, {Name: "b.example", State: "failing"}},
		MoreDomains: map[string]int{"pending": 3}, DomainChecks: "no ledger",
		Senders: []conditions.Sender{{Project: 7, Slug: "acme", Is: "error", Since: at}},
		Webhooks: []conditions.Webhook{{Name: "a", OffSince: at, OffReason: "410"}, {Name: "b", Oldest: at.Add(-time.Hour), Failing: 1},
			{Name: "c", DeadAt: at}, {Name: "d", GapAt: at}},
		Inbound: []conditions.Inbound{{Name: "ses", Closed: "no variable"}, {Name: "relay", Dropped: at}}}
}

// TestTable: each kind is found in some state, has an alert, or says why not; and all of it can be shown.
func TestTable(t *testing.T) {
	t.Parallel()
	all := everything()
	failed := &conditions.State{Store: "broken", Git: conditions.Git{Conflict: "merge it"}, CutOff: time.Hour}
	stuck := &conditions.State{WebhookProblem: "no ledger"}
	found := map[string]bool{}
	for _, c := range append(conditions.Of(all), slices.Concat(conditions.Of(failed), conditions.Of(stuck))...) {
		found[c.ID] = true
		if c.Severity == "" || c.Remedy == "" || !strings.HasPrefix(c.Guide, "/docs/") || !strings.HasSuffix(c.Sentence, ".") ||
			strings.Contains(c.Sentence, "%!") || c.Clause() == "" {
			t.Errorf("an incomplete condition: %+v", c)
		}
	}
	ids := map[string]bool{}
	for _, k := range conditions.Kinds() {
		if ids[k.ID] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(k.ID) {
			t.Errorf("%q is not a new id in kebab case", k.ID)
		}
		ids[k.ID] = true
		if both := k.Found() && k.Alert.Name != ""; both != (k.Except == "") {
			t.Errorf("%s: condition %t, alert %q, except %q", k.ID, k.Found(), k.Alert.Name, k.Except)
		}
		if found[k.ID] != k.Found() || k.Found() && k.Check == "" {
			t.Errorf("%s: a state of everything() finds it: %t, want %t; its check of doctor is %q", k.ID, found[k.ID], k.Found(),
				k.Check)
		}
		if n := strings.Count(conditions.Rules(), "alert: Fingerpost"+k.Alert.Name+"\n"); k.Alert.Name != "" && n != 1 {
			t.Errorf("%s has %d rules", k.ID, n)
		}
	}
}

// TestOf: nothing needs a person in a node without facts; the worst is first; what one condition explains is not told twice.
func TestOf(t *testing.T) {
	t.Parallel()
	if b, err := json.Marshal(conditions.Of(new(conditions.State))); err != nil || string(b) != "[]" {
		t.Errorf("of nothing: %s, %v", b, err)
	}
	f := func(s conditions.State, want ...string) {
		t.Helper()
		s.Time = at
		var got []string
		for _, c := range conditions.Of(&s) {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(conditions.State{Files: conditions.Files{Warnings: 1, Errors: 1}, NotReady: true, Store: "broken"}, "store-degraded", "files-broken", "not-ready", "files-warned")
	f(conditions.State{Store: "broken", Unaudited: true}, "store-degraded")
	f(conditions.State{Git: conditions.Git{Conflict: "x", Behind: 1}}, "git-conflict")
	f(conditions.State{Cluster: "x", CutOff: time.Hour}, "edge-cut-off")
	f(conditions.State{AuditGaps: []conditions.Gap{{Found: at.Add(-8 * 24 * time.Hour)}}})
	f(conditions.State{MailGaps: []conditions.Gap{{Reason: "it is examined"}}}, "mail-log-gap")
	f(conditions.State{DiskUsed: 0.89, MailWaits: 5 * time.Minute, Certificate: at.Add(14 * 24 * time.Hour)})
	f(conditions.State{Certificate: at.Add(-time.Hour)}, "certificate-ends")
	f(conditions.State{Keys: []conditions.Key{{Name: "old", Ends: at.Add(-time.Hour)}, {Name: "new", Ends: at.Add(15 * 24 * time.Hour)}}})

	f(conditions.State{Webhooks: []conditions.Webhook{{Name: "well", Oldest: at.Add(-15 * time.Minute), Waiting: 2, Failing: 1},
		{Name: "off", OffSince: at, Oldest: at.Add(-time.Hour)}, {Name: "closed", NoSecret: true, Oldest: at.Add(-time.Hour)}, {Name: "slow", Oldest: at.Add(-time.Hour)},
		{Name: "history", DeadAt: at.Add(-7 * 24 * time.Hour), GapAt: at.Add(-7 * 24 * time.Hour)}}}, "secret-closed", "webhook-off", "webhook-waits")
	f(conditions.State{WebhookProblem: "x", Unaudited: true}, "audit-unavailable")
	f(conditions.State{Inbound: []conditions.Inbound{{Name: "history", Dropped: at.Add(-7 * 24 * time.Hour)}, {Name: "closed", Closed: "x"}, {Name: "full", Full: true}, {Name: "list", ListFull: at}}},
		"secret-closed", "inbound-dropped", "inbound-dropped")

	s := &conditions.State{Time: at, Files: conditions.Files{Errors: 2, Quarantined: 1, FirstError: "acme.hcl:5: unknown status"},
		Domains: []conditions.Domain{{Name: "a.example", State: "lost", Since: at}}}
	b, err := json.Marshal(conditions.Of(s))
	const want = `[{"id":"files-broken","severity":"warning","subject":"","since":null,` +
		`"sentence":"The files have 2 errors; what 1 file said before is served.","detail":"acme.hcl:5: unknown status",` +
		`"remedy":"run \"fingerpost validate\" for the place and a hint","guide":"/docs/alerts#fingerpostfilesquarantined"},` +
		`{"id":"domain-lost","severity":"warning","subject":"domain a.example","since":"2026-11-27T12:00:00Z",` +
		`"sentence":"The proof of the domain a.example has been gone for too long.",` +
		`"remedy":"ask the customer to publish the record again; if the domain was sold, remove it",` +
		`"guide":"/docs/alerts#fingerpostdomainsfailing"}]`
	if string(b) != want || err != nil {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	if c := conditions.Of(s)[0]; c.Clause() != "the files have 2 errors" {
		t.Errorf("clause %q", c.Clause())
	}
}
