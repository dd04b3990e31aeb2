package resolver_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// declaredReads are the reads of what the files declare. Each reports whether it has the project that the write with
// this number made.
var declaredReads = map[string]func(r *resolver.Resolver, p *catalog.ProjectConfig, number int) (bool, error){
	"Projects": func(r *resolver.Resolver, _ *catalog.ProjectConfig, number int) (bool, error) {
		_, total, err := r.Projects(resolver.Query{Page: 1, Limit: 1})
		return total == number, err
	},
	"FindProjects": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		rows, _, err := r.FindProjects(resolver.Search{Text: p.Project.Slug}, resolver.Query{})
		return slices.ContainsFunc(rows, func(x *catalog.Project) bool { return x.Slug == p.Project.Slug }), err
	},
	"FoundProjects": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		found, err := r.FoundProjects(resolver.Search{Text: p.Project.Slug}, []int64{p.Project.ID})
		return len(found) == 1, err
	},
	"EachProject": func(r *resolver.Resolver, _ *catalog.ProjectConfig, number int) (bool, error) {
		n := 0
		err := r.EachProject(func(*catalog.Project) bool { n++; return true })
		return n == number, err
	},
	"ProjectByID": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.ProjectByID(p.Project.ID)
		return err == nil, err
	},
	"ProjectBySlug": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.ProjectBySlug(p.Project.Slug)
		return err == nil, err
	},
	"ProjectConfig": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, _, err := r.ProjectConfig(p.Project.ID)
		return err == nil, err
	},
	"Summaries": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		rows, err := r.Summaries([]*catalog.Project{&p.Project})
		return len(rows) == 1, err
	},
	"Domains": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, total, err := r.Domains(p.Project.ID, resolver.Query{})
		return total == 1, err
	},
	"Domain": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.Domain(p.Project.ID, p.Domains[0].ID)
		return err == nil, err
	},
	"DomainNamed": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		d, err := r.DomainNamed(p.Domains[0].Name)
		return d != nil, err
	},
	"DomainsBelow": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		n := 0
		err := r.DomainsBelow(p.Project.Slug+".example", func(*catalog.Domain) bool { n++; return true })
		return n == 1, err
	},
	"EachDomain": func(r *resolver.Resolver, _ *catalog.ProjectConfig, number int) (bool, error) {
		n := 0
		err := r.EachDomain(func(*catalog.Domain) bool { n++; return true })
		return n == number, err
	},
	"FindDomains": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		rows, _, err := r.FindDomains(resolver.Search{Text: p.Domains[0].Name}, resolver.Query{})
		return len(rows) == 1, err
	},
	"FoundDomains": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		found, err := r.FoundDomains(resolver.Search{Text: p.Domains[0].Name}, []int64{p.Project.ID})
		return len(found) == 1, err
	},
	"ServedDomain": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		d, _, err := r.ServedDomain(p.Domains[0].Name)
		return d != nil, err
	},
	"ProjectOfDomain": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		id, err := r.ProjectOfDomain(p.Domains[0].Name)
		return id == p.Project.ID, err
	},
	"Resolve": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.Resolve([]byte(p.Domains[0].Name), resolver.Nested)
		return err == nil, err
	},
	"MailProject": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.MailProject(p.Project.ID)
		return err == nil, err
	},
	"ReadMailProject": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.ReadMailProject(p.Project.ID)
		return err == nil, err
	},
	"MailTemplate": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.MailTemplate(p.Project.ID, "T")
		return err == nil, err
	},
	"OwnTemplate": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		x, err := r.OwnTemplate(p.Project.ID, "T")
		return x != nil, err
	},
	"HasCategory": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		return r.HasCategory(p.Project.ID)
	},
	"Template": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.Template(p.Project.ID, p.Templates[0].ID)
		return err == nil, err
	},
	"Templates": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, total, err := r.Templates(p.Project.ID, resolver.Query{})
		return total == 1, err
	},
	"ServiceSettings": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.ServiceSettings(p.Project.ID)
		return err == nil, err
	},
	"AuthSettings": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.AuthSettings(p.Project.ID)
		return err == nil, err
	},
	"Counts": func(r *resolver.Resolver, _ *catalog.ProjectConfig, number int) (bool, error) {
		return int(r.Counts().Projects) == number, nil
	},
	"File": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		row, err := r.File(p.Project.Slug + ".hcl")
		return row != nil, err
	},
	"Files": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (has bool, err error) {
		err = r.Files(func(path string, _ *catalog.FileRow) bool { has = has || path == p.Project.Slug+".hcl"; return true })
		return has, err
	},
	"LastGood": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		b, err := r.LastGood(p.Project.Slug + ".hcl")
		return b != nil, err
	},
	"Tree": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (has bool, err error) {
		err = r.Tree(func(path string, _ []byte) bool { has = has || path == p.Project.Slug+".hcl"; return true })
		return has, err
	},
	"TreeFile": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		_, err := r.TreeFile(p.Project.Slug + ".hcl")
		return err == nil, err
	},
	"Audit": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		page, err := r.Audit(catalog.AuditQuery{ProjectID: p.Project.ID, Page: 1, Limit: 10})
		return page.Total > 0, err
	},
	"Keys": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		return r.Keys().Named("k-"+p.Project.Slug) != nil, nil
	},
	"ListsNaming": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		return slices.Contains(r.ListsNaming(p.Project.Slug), catalog.ListHolder{Kind: catalog.KindKey, Name: "k-" + p.Project.Slug}), nil
	},
	"Overlay": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		o, err := r.Overlay(time.Now())
		if err != nil {
			return false, err
		}
		defer o.Close()
		_, err = o.ProjectByID(p.Project.ID)
		return err == nil, err
	},
	"KeyNames": func(r *resolver.Resolver, p *catalog.ProjectConfig, _ int) (bool, error) {
		return slices.Contains(r.KeyNames(), "k-"+p.Project.Slug), nil
	},
}

// otherMethods read nothing of what the files declare, or change something, or are a part of a read above.
var otherMethods = strings.Fields(`
	AcceptMail AddGuestKey AddPersonKey AnswerMail Apply AuditEntry AuditGaps AuditHeads Auditable Back Backup BounceMail Cached
	ChangeDomainNotes ChangeHooks ChangePending ChangeProposals Close Committed DataDir DecoderRevision Defaults
	Degraded DomainNote DropIndexes EachDomainNote EachNamed EachQueued Edges EndedSince EntriesSince EventMarks
	Events Fill ForgetSecrets Generation HookDeliveries HookDelivery Hooks Idempotency Inbounds KeepList KeySource KeySources KeyUses
	LastHookDelivery ListedProjects Logins MailAcross MailGaps MailLedger MailLog MailLogs Metrics MoveCommits Named NewMailID NextKeyEnd Note NoteAll
	NoteDomain NoteObject NoteRemovals Pace
	PendingWrites Position ProjectEntriesSince ProjectsWithKey ProposalRecords PruneAudit PruneHooks PruneMail
	PruneTrail Published QueuedMail ReclaimMail Refused Release Removals RemoveNamed ResolveTraced SMTPConfig Sealing
	SecretProblems SetDecoderRevision SetKeyUses SetNamed Settle Suppress SuppressOnce SuppressionCount SuppressionPage Suppressions TakePersonKey TakeUp Text TokenKeys TrailLedger UnknownSlugs
	UpdateMail Use VerifyAudit WaitPosition Webhooks Writable`)

// inMemory are the reads that something in memory answers. They are asked most.
var inMemory = []string{"Projects", "FindProjects", "FindDomains", "Counts", "KeyNames"}

// TestReadsHaveThePosition waits for the position of each write, and asks every read: all have the write. A position is
// a promise for lists, searches and keys as well as for resolve.
func TestReadsHaveThePosition(t *testing.T) {
	t.Parallel()
	methods := reflect.TypeFor[*resolver.Resolver]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if _, reads := declaredReads[name]; reads == slices.Contains(otherMethods, name) {
			t.Errorf("%s must be one of declaredReads, or of otherMethods if it reads nothing of what the files declare", name)
		}
	}
	r := open(t, resolver.Options{})
	made := func(number int) (*catalog.ProjectConfig, catalog.FileChange) {
		slug := fmt.Sprintf("p%d", number)
		p := block(slug, "shop."+slug+".example")
		u := catalog.DeriveTemplateUUID(p.Project.UUID, "T")
		p.Templates = []catalog.Template{{ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, ProjectID: p.Project.ID, Code: "T",
			Name: "T", SubjectTemplate: "s", BodyText: "b", Active: true, Category: "news"}}
		f := file(slug+".hcl", p)
		f.Declared.Keys = []catalog.Key{{Name: "k-" + slug, ID: fmt.Sprintf("%06d", number), Hash: [32]byte{byte(number), byte(number >> 8)}, Allow: catalog.MayRead, Projects: []string{slug}}}
		return &p, f
	}
	for name, read := range declaredReads { // builds every index
		_, change := made(1)
		if name == "Projects" {
			apply(t, r, change)
		}
		_, _ = read(r, &catalog.ProjectConfig{Domains: []catalog.Domain{{Name: "x.example"}}, Templates: make([]catalog.Template, 1)}, 0)
	}
	begin := r.Position()
	rounds := testrig.Size(t, 6000, testrig.Part(1000))
	missing := map[string]int{}
	turn, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range declaredReads {
				if !yield(name) {
					return
				}
			}
		})
		for i := range rounds {
			p, _ := made(i + 2)
			at := begin
			at.Generation += uint64(i + 1)
			turn <- struct{}{}
			if err := r.WaitPosition(context.Background(), at); err != nil {
				t.Error(err)
				return
			}
			name := names[i/4%len(names)] // one for each wait: the first read is the one that may come too early
			if i%4 > 0 {
				name = inMemory[i%len(inMemory)]
			}
			if has, err := declaredReads[name](r, p, i+2); !has {
				missing[fmt.Sprint(name, " ", err)]++
			}
		}
	}()
	for i := range rounds {
		_, change := made(i + 2)
		<-turn
		apply(t, r, change)
	}
	<-done
	for name, n := range missing {
		t.Errorf("%s lacked %d of the writes whose position it had waited for", name, n)
	}
}
