package inbound_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/inbound"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const secret = "0123456789abcdef-secret"

// A rig is a Desk on a resolver in memory, with a clock of its own.
type rig struct {
	t        testing.TB
	resolver *resolver.Resolver
	log      *testrig.Log
	mu       sync.Mutex // guards now
	now      time.Time
	*inbound.Desk
}

// newRig opens a Desk for blocks and the projects acme (1), shop (2) and other (3).
func newRig(t testing.TB, provider *inbound.Provider, blocks ...*catalog.Inbound) *rig {
	t.Helper()
	r := &rig{t: t, log: &testrig.Log{}, now: time.Now()}
	logger := slog.New(slog.NewJSONHandler(r.log, nil))
	var err error
	if r.resolver, err = resolver.Open(resolver.Options{Logger: logger, CacheBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.resolver.Close() })
	d := &catalog.Declared{}
	for i, slug := range []string{"acme", "shop", "other"} {
		d.Projects = append(d.Projects, catalog.ProjectConfig{Project: catalog.Project{ID: int64(i + 1), Name: slug, Slug: slug,
			UUID: catalog.DeriveProjectUUID(slug), Status: catalog.StatusActive}, Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()})
	}
	r.declare("projects.hcl", d)
	r.blocks(blocks...)
	r.Desk = inbound.New(inbound.Options{Blocks: r.resolver.Inbounds, Ledger: r.resolver, Projects: r.resolver, Logger: logger,
		Provider: provider,
		Now: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		},
		Secrets: func(b *catalog.Inbound) (list []string, err error) {
			for _, s := range b.Secrets {
				if s.Source != catalog.SecretPlain {
					err = fmt.Errorf("%s is not set", s.Ref)
					continue
				}
				list = append(list, s.Ref)
			}
			return list, err
		}})
	return r
}

func (r *rig) declare(path string, d *catalog.Declared) {
	r.t.Helper()
	change := &catalog.Change{Files: []catalog.FileChange{{Path: path, Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d, Bytes: []byte(path)}}}
	if _, err := r.resolver.Apply(change); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) blocks(blocks ...*catalog.Inbound) {
	d := &catalog.Declared{}
	for _, b := range blocks {
		d.Inbounds = append(d.Inbounds, *b)
	}
	r.declare("inbound.hcl", d)
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// block returns a block with the secret of these tests.
func block(name, format string, projects ...string) *catalog.Inbound {
	b := catalog.NewInbound(name)
	b.Format, b.Projects = format, projects
	b.Secrets = []catalog.Secret{{Source: catalog.SecretPlain, Ref: secret}}
	return b
}

// take hands a message to a block as its provider does. The result is listed, present, repeated, ignored, unmatched.
func (r *rig) take(name string, message any) (got [5]int, err error) {
	r.t.Helper()
	b, err := r.Admit(name, basic(secret))
	if err != nil {
		r.t.Fatal(err)
	}
	text, is := message.(string)
	if !is {
		out, err := json.Marshal(message)
		if err != nil {
			r.t.Fatal(err)
		}
		text = string(out)
	}
	res, err := r.Take(context.Background(), b, []byte(text), catalog.Author{Door: catalog.DoorInbound, RequestID: "r1"})
	return [5]int{res.Listed, res.Present, res.Repeated, res.Ignored, res.Unmatched}, err
}

// takes is take with what is expected.
func (r *rig) takes(name string, message any, want [5]int) {
	r.t.Helper()
	if got, err := r.take(name, message); got != want || err != nil {
		r.t.Errorf("%v, %v, want %v of %v", got, err, want, message)
	}
}

// refuses expects problems with these fields.
func (r *rig) refuses(name string, message any, fields ...string) {
	r.t.Helper()
	_, err := r.take(name, message)
	e, is := err.(*catalog.Error)
	if !is || e.Code != catalog.CodeValidation {
		r.t.Errorf("%v, want problems with %v", err, fields)
		return
	}
	var got []string
	for _, p := range e.Problems {
		got = append(got, p.Path)
	}
	if !slices.Equal(got, fields) {
		r.t.Errorf("problems %v, want those of %v", e.Problems, fields)
	}
}

// list returns the list of a project: address, reason, category and note of each entry.
func (r *rig) list(project int64) (rows []string) {
	r.t.Helper()
	list, _, err := r.resolver.SuppressionPage(project, catalog.SuppressionQuery{Page: 1, Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range list {
		rows = append(rows, fmt.Sprintf("%s %s %q %q", s.Address, s.Reason, s.Note, s.By))
	}
	return rows
}

func (r *rig) has(project int64, want ...string) {
	r.t.Helper()
	if got := r.list(project); !slices.Equal(got, want) {
		r.t.Errorf("the list of project %d is %q, want %q", project, got, want)
	}
}

func (r *rig) remove(project int64, address string) {
	r.t.Helper()
	removed, err := r.resolver.Release(project, catalog.SuppressionQuery{Address: address}, catalog.Author{Door: catalog.DoorAPI, Actor: "Grace"})
	if err != nil || len(removed) == 0 {
		r.t.Fatalf("%v, %v", removed, err)
	}
}

// count returns how many outcomes of a block had a result.
func (r *rig) count(name, result string) (n uint64) {
	r.EachCount(func(b, of string, count uint64) {
		if b == name && of == result {
			n = count
		}
	})
	return n
}

// sent stores the entry of a mail of a project to an address, without a queue, and returns its Message-ID.
func (r *rig) sent(project int64, to string) string {
	r.t.Helper()
	id := r.resolver.NewMailID()
	log := catalog.MailLog{ID: id, ProjectID: project, CreatedAt: time.Now().UTC().Truncate(time.Microsecond), Status: catalog.MailSuppressed,
		ToEmail: to, MessageID: fmt.Sprintf("<%d.0123456789abcdef@shop.example>", id)}
	if _, err := r.resolver.AcceptMail(&log, nil, nil); err != nil {
		r.t.Fatal(err)
	}
	return log.MessageID
}

func basic(password string) [][]byte {
	return [][]byte{[]byte("Basic " + base64.StdEncoding.EncodeToString([]byte("fingerpost:"+password)))}
}
