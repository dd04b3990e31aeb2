package now_test

import (
	"reflect"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/conditions"
	"fingerpost/api/console/now"
)

var at = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestItems(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	admin := now.May{Write: true, Edit: true, Everything: true, Key: "admin"}
	reader := now.May{Key: "reader"}
	proposer := now.May{Edit: true, Key: "carol"}
	carol := "carol"
	broken := conditions.Files{Errors: 2, Quarantined: 1, FirstError: "acme.hcl:5: unknown status"}
	f := func(name string, facts now.Facts, want ...now.Item) {
		t.Helper()
		facts.Time = at
		got := now.Items(&facts)
		if len(got) != len(want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
			return
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%s: %+v, want %+v", name, got[i], want[i])
			}
		}
	}
	f("nothing", now.Facts{May: admin})
	f("all good", now.Facts{May: admin, State: conditions.State{Edges: []conditions.Edge{{Name: "lisbon", Version: "1", Ready: true, LagMS: 900}},
		Keys: []conditions.Key{{Name: "ci", Ends: at.Add(35 * day)}, {Name: "old", Ends: at.Add(-day)}}}})
	f("errors", now.Facts{May: admin, State: conditions.State{Files: broken}}, now.Item{Kind: now.Bad, Text: "The files have 2 errors; what 1 file said before is served.",
		Detail: "acme.hcl:5: unknown status", To: "/console/problems", Do: "See where"})
	held := conditions.Files{Held: &conditions.Held{Reason: "more than half", Projects: 12, Domains: 1, Since: at}}
	item := now.Item{Kind: now.Bad, Text: "A reload of the files is held back: it would remove 12 projects and 1 domain.",
		Detail: "more than half", Since: at, To: "/console/problems", Do: "Look and decide"}
	f("held", now.Facts{May: admin, State: conditions.State{Files: held}}, item)
	item.Do = "See what it removes"
	f("held, for a reader", now.Facts{May: reader, State: conditions.State{Files: held}}, item)
	f("disk and store", now.Facts{State: conditions.State{Files: conditions.Files{LowDisk: "/data"}, Store: "broken"}},
		now.Item{Kind: now.Bad, Text: "The store on disk is not in use: look-ups go on from memory, changes are refused.",
			Detail: "broken", To: "/console/problems", Do: "See the problem"},
		now.Item{Kind: now.Bad, Text: "The disk is nearly full: changes are refused until there is room.", Detail: "/data",
			To: "/console/problems", Do: "See the problem"})
	f("git", now.Facts{State: conditions.State{Git: conditions.Git{Behind: 1, Errors: []string{"no route"}, Overruled: 1}}},
		now.Item{Kind: now.Bad, Text: "Git does not work; the service goes on.", Detail: "no route", To: "/console/problems", Do: "See the problem"},
		now.Item{Kind: now.Warn, Text: "The git server has 1 commit that is not live here yet.", To: "/console/live", Do: "See the state"},
		now.Item{Kind: now.Warn, Text: "1 change is set aside: a person's commit changed the same, and won.", To: "/console/problems", Do: "See them"})
	f("domains", now.Facts{State: conditions.State{Domains: []conditions.Domain{{Project: 7, ID: 9, Name: "a.example", State: "lost"}, {Project: 7, ID: 8, Name: "b.example", State: "pending"},
		{Project: 7, ID: 8, Name: "c.example", State: "failing"}}}},
		now.Item{Kind: now.Bad, Text: "The proof of the domain a.example has been gone for too long.",
			To: "/console/projects/7/domains/9", Do: "See its records"},
		now.Item{Kind: now.Bad, Text: "The proof of the domain c.example is gone; it is answered for now.",
			To: "/console/projects/7/domains/8", Do: "See its records"},
		now.Item{Kind: now.Warn, Text: "The domain b.example is not proven yet, and not answered.",
			To: "/console/projects/7/domains/8", Do: "See its records"})
	f("domains alike", now.Facts{State: conditions.State{Domains: []conditions.Domain{{Project: 7, ID: 9, Name: "a.example", State: "pending", Since: at.Add(time.Hour)},
		{Project: 7, ID: 8, Name: "b.example", State: "pending", Since: at}}, MoreDomains: map[string]int{"pending": 1}}},
		now.Item{Kind: now.Warn, Text: "3 domains are not proven yet, and not answered.", Detail: "The first 2 are listed.", Since: at, List: []now.Item{
			{Kind: now.Warn, Text: "The domain a.example is not proven yet, and not answered.", Since: at.Add(time.Hour),
				To: "/console/projects/7/domains/9", Do: "See its records"},
			{Kind: now.Warn, Text: "The domain b.example is not proven yet, and not answered.", Since: at,
				To: "/console/projects/7/domains/8", Do: "See its records"}}})
	f("mail alike", now.Facts{May: reader, State: conditions.State{Stopped: []conditions.Stopped{{Project: 7, Name: "Acme", Code: "SMTP_AUTH_FAILED", Why: "the username or the password is refused", Since: at},
		{Project: 8, Name: "Globex", Code: "SMTP_AUTH_FAILED", Why: "the username or the password is refused"}}}},
		now.Item{Kind: now.Bad, Text: "No mail of 2 projects is sent: the username or the password is refused.", Since: at,
			To: "/console/mail", Do: "See them", List: []now.Item{
				{Kind: now.Bad, Text: "No mail of Acme is sent: the username or the password is refused.", Detail: "SMTP_AUTH_FAILED",
					Since: at, To: "/console/mail?project=7", Do: "See its mail"},
				{Kind: now.Bad, Text: "No mail of Globex is sent: the username or the password is refused.", Detail: "SMTP_AUTH_FAILED",
					To: "/console/mail?project=8", Do: "See its mail"}}})
	f("keys alike", now.Facts{May: reader, State: conditions.State{Keys: []conditions.Key{{Name: "a", Ends: at.Add(3 * day)}, {Name: "b", Ends: at.Add(3 * day)}}}},
		now.Item{Kind: now.Warn, Text: "2 keys end within 14 days.", List: []now.Item{
			{Kind: now.Warn, Text: "The key a ends in 3 days."}, {Kind: now.Warn, Text: "The key b ends in 3 days."}}})
	stopped := []conditions.Stopped{{Project: 7, Name: "Acme", Code: "SMTP_AUTH_FAILED", Why: "the username or the password is refused", Waiting: 1, Since: at}}
	item = now.Item{Kind: now.Bad, Text: "No mail of Acme is sent: the username or the password is refused.",
		Detail: "SMTP_AUTH_FAILED, 1 mail waits", Since: at, To: "/console/edit?kind=smtp-config&project=7", Do: "Mend the SMTP config"}
	f("mail", now.Facts{May: proposer, State: conditions.State{Stopped: stopped}}, item)
	item.To, item.Do = "/console/mail?project=7", "See its mail"
	f("mail, for a reader", now.Facts{May: reader, State: conditions.State{Stopped: stopped}}, item)
	f("edges", now.Facts{State: conditions.State{Edges: []conditions.Edge{{Name: "a", Version: "1", Ready: true, LagMS: 130_000}, {Name: "b"},
		{Name: "c", Version: "1", BeatAgeMS: 7_300_000}}}},
		now.Item{Kind: now.Bad, Text: "2 edges are missing.", To: "/console/live", Do: "See the edges", List: []now.Item{
			{Kind: now.Bad, Text: "The edge b is missing: it was not heard since this server started.", To: "/console/live", Do: "See the edges"},
			{Kind: now.Bad, Text: "The edge c is missing: it was last heard 2 hours ago.", To: "/console/live", Do: "See the edges"}}},
		now.Item{Kind: now.Bad, Text: "The edge a answers from what was true 2 minutes ago.", To: "/console/live", Do: "See the edges"})
	f("cut off", now.Facts{May: admin, State: conditions.State{CutOff: 3 * time.Minute}}, now.Item{Kind: now.Bad, Text: "This edge last heard its authority " +
		"3 minutes ago: it answers from what was true then, and refuses changes and mail.", To: "/console/live", Do: "See the state"})
	f("cut off, for a key of some projects", now.Facts{State: conditions.State{CutOff: time.Minute}}, now.Item{Kind: now.Bad, Text: "This edge last heard its " +
		"authority 1 minute ago: it answers from what was true then, and refuses changes and mail."})
	f("keys", now.Facts{May: admin, State: conditions.State{Keys: []conditions.Key{{Name: "ci", Ends: at.Add(3 * day)}}}},
		now.Item{Kind: now.Warn, Text: "The key ci ends in 3 days.", To: "/console/keys", Do: "See the keys"})
	f("own key", now.Facts{May: reader, State: conditions.State{Keys: []conditions.Key{{Name: "reader", Ends: at.Add(6 * time.Hour), Own: true}}}},
		now.Item{Kind: now.Warn, Text: "Your key reader ends in 6 hours."})
	open := []client.Proposal{{Name: "x", Title: "Rename", Author: "Bob <b@b.example>", Mergeable: true, CreatedAt: "2026-11-27T12:00:00"},
		{Name: "y", Title: "Remove", Author: "Carol <c@c.example>", Key: &carol}}
	f("proposals", now.Facts{May: admin, Proposals: open},
		now.Item{Kind: now.Warn, Text: "2 proposals wait for a decision.", Since: at, To: "/console/proposals", Do: "See them", List: []now.Item{
			{Kind: now.Warn, Text: "Bob proposes: Rename.", Since: at, To: "/console/proposals/x", Do: "Read and decide"},
			{Kind: now.Warn, Text: "Carol proposes: Remove.", Detail: "It conflicts with what is live.", To: "/console/proposals/y", Do: "Read and decide"}}})
	f("own proposals", now.Facts{May: proposer, Proposals: open}, now.Item{Kind: now.Warn,
		Text:   "Your proposal waits for a person who may apply it: Remove.",
		Detail: "It conflicts with what is live.", To: "/console/proposals/y", Do: "Read it"})
	f("proposals, for a reader", now.Facts{May: reader, Proposals: open})
}

// TestItemsOfEachKind: no condition is without a page that helps, for a key that may see all.
func TestItemsOfEachKind(t *testing.T) {
	t.Parallel()
	for _, k := range conditions.Kinds() {
		item := now.ItemOf(&conditions.Condition{ID: k.ID, Sentence: "It is so.", Guide: k.GuidePath()}, &now.May{Everything: true})
		want := now.Warn
		if k.Broken {
			want = now.Bad
		}
		if item.To == "" || item.Do == "" || item.Text != "It is so." || item.Kind != want {
			t.Errorf("%s: %+v", k.ID, item)
		}
	}
	for id := range now.Pages {
		if k := conditions.KindOf(id); !k.Found() {
			t.Errorf("there is a page for %q, which is no condition", id)
		}
	}
}
