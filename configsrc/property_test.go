package configsrc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/hclfile"
	"fingerpost/mailer/template"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	propertySeed  = flag.Uint64("property.seed", 0, "seed of the first world of TestRandomWrites; 0: one of its own")
	propertyEdits = flag.Int("property.edits", 0, "edits that TestRandomWrites makes; 0: 50,000 in CI, else 500; 500 under the race detector")
)

// editsPerWorld is the number of edits in one folder.
const editsPerWorld = 250

// TestRandomWrites tests the promise of configsrc/atomicfile/README.md, What a write leaves: random writes of projects,
// domains, settings, SMTP configs and templates in folders written by many hands, through a Source with real files and
// a real store. After each write every comment outside the removed parts is there, unrelated lines have the same bytes,
// other files are untouched, and the store has the requested content; every hundred writes, and at the end of a folder,
// a fresh load equals the store.
//
// A failure names the seed of its folder: go test -run TestRandomWrites -property.seed=… -property.edits=250.
func TestRandomWrites(t *testing.T) {
	edits := *propertyEdits
	if edits == 0 {
		edits = testrig.Size(t, 50_000, 60)
		if testrig.Race {
			edits = 500
		}
	}
	first := *propertySeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	worlds := (edits + editsPerWorld - 1) / editsPerWorld
	start := time.Now()
	var next, made atomic.Int64
	var running sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) { // most of them wait for the disk
		running.Go(func() {
			for !t.Failed() {
				i := int(next.Add(1)) - 1
				if i >= worlds {
					return
				}
				n := editWorld(t, first+uint64(i), min(editsPerWorld, edits-i*editsPerWorld))
				made.Add(int64(n))
			}
		})
	}
	running.Wait()
	testrig.Figure(t, "%d edits in %d folders, seed %d, %v", made.Load(), worlds, first, time.Since(start).Round(time.Millisecond))
}

// A world is a folder with writes.
type world struct {
	hands
	t        *testing.T
	seed     uint64
	edits    int
	dir      string
	source   *configsrc.Source
	resolver *resolver.Resolver
	uuids    []catalog.UUID // of the projects, in seed order
}

// stop ends a world early.
type stop struct{}

func editWorld(t *testing.T, seed uint64, edits int) int {
	dir, err := os.MkdirTemp("", "fingerpost-writes-")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer os.RemoveAll(dir)
	w := &world{hands: hands{Rand: rand.New(rand.NewPCG(seed, 1))}, t: t, seed: seed, dir: dir}
	defer func() {
		if r := recover(); r != nil && r != (stop{}) {
			panic(r)
		}
	}()
	for range 3 {
		w.save()
	}
	if w.sometimes(2) {
		relay := "defaults {\n  smtp_config { # shared\n    host = \"relay.example\"\n  }\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "relay.hcl"), []byte(relay), 0o644); err != nil {
			w.fail("save", "%v", err)
		}
	}
	var end func()
	w.resolver, w.source, end = w.load(true)
	defer end()
	w.adopt()
	for w.edits < edits && !t.Failed() {
		switch {
		case w.edits%100 == 99:
			w.compareFresh()
		case len(w.uuids) < 3: // a person adds a file
			w.save()
			if err := w.source.Reload(context.Background()); err != nil {
				w.fail("reload", "%v", err)
			}
			w.adopt()
		}
		if w.edit() {
			w.edits++
		}
	}
	w.compareFresh()
	if _, _, err := w.source.Recent(); err != nil {
		w.fail("keep what was decoded", "%v", err)
	}
	return w.edits
}

func (w *world) fail(what, format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("-property.seed=%d, edit %d, %s: %s", w.seed, w.edits, what, fmt.Sprintf(format, args...))
	panic(stop{})
}

// save writes a new file.
func (w *world) save() {
	name := fmt.Sprintf("%04d.hcl", w.slugs)
	if w.sometimes(3) {
		name = "sub/" + name
		if err := os.MkdirAll(filepath.Join(w.dir, "sub"), 0o755); err != nil {
			w.fail("save", "%v", err)
		}
	}
	content := w.file()
	if err := os.MkdirAll(filepath.Join(w.dir, "bodies"), 0o755); err != nil {
		w.fail("save", "%v", err)
	}
	for path, text := range w.bodies {
		if err := os.WriteFile(filepath.Join(w.dir, path), []byte(text), 0o644); err != nil {
			w.fail("save", "%v", err)
		}
	}
	clear(w.bodies)
	if w.sometimes(2) {
		if out, ds := hclfile.Format([]byte(content)); !ds.HasErrors() {
			content = string(out)
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o644); err != nil {
		w.fail("save", "%v", err)
	}
}

// load makes a fresh node of the folder.
func (w *world) load(run bool) (*resolver.Resolver, *configsrc.Source, func()) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		w.fail("open", "%v", err)
	}
	s := configsrc.New(configsrc.Options{Dir: w.dir, Sink: r, Logger: log, MaxDelete: 1})
	ctx, cancel := context.WithCancel(context.Background())
	err = s.Load(ctx)
	if st := s.Status(); err != nil || st.Errors > 0 {
		w.fail("load", "%v %v", err, st.Problems)
	}
	var running sync.WaitGroup
	if run {
		running.Go(func() { s.Run(ctx) })
	}
	return r, s, func() {
		cancel()
		running.Wait()
		r.Close()
	}
}

// adopt adds new projects to the world.
func (w *world) adopt() {
	err := w.resolver.EachProject(func(p *catalog.Project) bool {
		if !slices.Contains(w.uuids, p.UUID) {
			w.uuids = append(w.uuids, p.UUID)
		}
		return true
	})
	if err != nil {
		w.fail("read", "%v", err)
	}
}

// tree reads the folder.
func (w *world) tree() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(w.dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = string(b)
		return err
	})
	if err != nil {
		w.fail("read the folder", "%v", err)
	}
	return all
}

// A deed is one edit and what it may touch.
type deed struct {
	what    string
	words   []string // a changed or removed line contains one of them, or is in a value that does
	removed string   // the removed block, with its label in a person's spelling
}

// edit makes one random write and checks the folder and the store. It reports whether the write was made.
func (w *world) edit() bool {
	before := w.tree()
	var u deed
	var want *catalog.ProjectConfig
	var err error
	i := w.IntN(len(w.uuids))
	switch uuid := w.uuids[i]; {
	case w.sometimes(12):
		p := &catalog.Project{UUID: catalog.UUID{byte(w.IntN(256)), byte(w.IntN(256)), byte(w.IntN(256)), 3: byte(w.edits), 4: byte(w.edits >> 8), 6: 0x40, 8: 0x80},
			Slug: w.slug(), Name: w.nasty(false), Status: w.pick(catalog.Statuses...)}
		if w.sometimes(2) {
			p.Description = new(w.nasty(true))
		}
		if len(p.Validate()) > 0 {
			return false
		}
		u.what = fmt.Sprintf("create %+v", *p)
		err = createProject(context.Background(), w.source, p)
		w.uuids = append(w.uuids, p.UUID)
	case w.sometimes(14):
		err = deleteProject(context.Background(), w.source, uuid, func(p *catalog.ProjectConfig) error {
			u = deed{what: "delete project " + p.Project.Slug, removed: `project\s+(/\*.*?\*/\s*)?"` + p.Project.Slug + `"`}
			return nil
		})
		w.uuids = slices.Delete(w.uuids, i, i+1)
	default:
		err = updateProject(context.Background(), w.source, uuid, func(p *catalog.ProjectConfig) error {
			u, want = w.change(p), p
			ps := p.Project.Validate()
			if p.SMTP != nil {
				ps = append(ps, p.SMTP.Validate()...)
			}
			for i := range p.Templates {
				ps = append(ps, template.Validate(&p.Templates[i])...)
			}
			if len(ps) > 0 {
				return errInvalid
			}
			return nil
		})
	}
	if errors.Is(err, errInvalid) {
		return false
	}
	after := w.tree()
	if err != nil {
		w.fail(u.what, "%v\n%s", err, show(before))
	}
	w.check(&u, before, after)
	if want != nil {
		w.says(&u, want)
	}
	return true
}

var errInvalid = errors.New("the API would not have taken it")

// change makes one of the writes of the API.
func (w *world) change(p *catalog.ProjectConfig) deed {
	flag := func(b *bool, words *[]string, word string) {
		if w.sometimes(2) {
			if now := w.sometimes(2); now != *b {
				*b, *words = now, append(*words, word)
			}
		}
	}
	u := deed{}
	header := `"` + p.Project.Slug + `"`
	switch w.IntN(12) {
	case 8, 9:
		u = w.changeSMTP(p)
	case 10, 11:
		u = w.changeTemplate(p)
	case 0, 1:
		u.words = []string{header}
		w.changeProject(&p.Project, &u)
	case 2:
		d := catalog.Domain{Name: w.domain(), Active: !w.sometimes(3), Primary: w.sometimes(4)}
		d.UUID = catalog.DeriveDomainUUID(p.Project.UUID, d.Name)
		u = deed{what: fmt.Sprintf("add domain %+v", d), words: []string{header}}
		if d.Primary {
			w.clearPrimary(p, &u)
		}
		p.Domains = append(p.Domains, d)
	case 3:
		if len(p.Domains) > 0 {
			i := w.IntN(len(p.Domains))
			u = deed{what: "delete domain " + p.Domains[i].Name, removed: `domain\s+` + label(p.Domains[i].Name)}
			p.Domains = slices.Delete(p.Domains, i, i+1)
		}
	case 4, 5:
		if len(p.Domains) > 0 {
			d := &p.Domains[w.IntN(len(p.Domains))]
			u.words = []string{label(d.Name)}
			if w.sometimes(3) {
				d.Name = w.domain()
			}
			flag(&d.Active, &u.words, "active")
			switch yes := w.sometimes(2); w.IntN(4) {
			case 0:
				d.Certificates, u.words = &yes, append(u.words, "certificates")
			case 1:
				d.Certificates, u.words = nil, append(u.words, "certificates")
			}
			switch value := []string{"pending", "lost", "2026-11-24", "2020-02-29"}[w.IntN(4)]; w.IntN(4) {
			case 0, 1:
				d.Verified, u.words = &value, append(u.words, "verified")
			case 2:
				d.Verified, u.words = nil, append(u.words, "verified")
			}
			primary := d.Primary
			flag(&primary, &u.words, "primary")
			if primary {
				w.clearPrimary(p, &u)
			}
			d.Primary = primary
			u.what = fmt.Sprintf("put domain %+v", *d)
		}
	case 6:
		u.words = []string{header, "service_settings"}
		s := &p.Service
		flag(&s.AuthEnabled, &u.words, "auth_enabled")
		flag(&s.MailEnabled, &u.words, "mail_enabled")
		flag(&s.SMSEnabled, &u.words, "sms_enabled")
		flag(&s.AuditEnabled, &u.words, "audit_enabled")
		u.what = fmt.Sprintf("put service settings %+v", *s)
	case 7:
		u.words = []string{header, "auth_settings"}
		a := &p.Auth
		if w.sometimes(2) {
			a.RegistrationMode, u.words = w.pick(catalog.RegistrationModes...), append(u.words, "registration_mode")
			if w.sometimes(2) { // as the API does if the body does not name them
				a.ApprovalRequired = a.RegistrationMode == catalog.RegistrationApprovalRequired
				a.InviteOnly = a.RegistrationMode == catalog.RegistrationInviteOnly
				u.words = append(u.words, "approval_required", "invite_only")
			}
		}
		flag(&a.EmailVerificationRequired, &u.words, "email_verification_required")
		flag(&a.PhoneVerificationRequired, &u.words, "phone_verification_required")
		flag(&a.ApprovalRequired, &u.words, "approval_required")
		flag(&a.InviteOnly, &u.words, "invite_only")
		flag(&a.TwoFactorRequired, &u.words, "two_factor_required")
		u.what = fmt.Sprintf("put auth settings %+v", *a)
	}
	return u
}

func (w *world) changeProject(p *catalog.Project, u *deed) {
	if w.sometimes(2) {
		p.Name, u.words = w.nasty(false), append(u.words, "name")
	}
	switch w.IntN(3) {
	case 0:
		p.Description, u.words = new(w.nasty(true)), append(u.words, "description")
	case 1:
		p.Description, u.words = nil, append(u.words, "description")
	}
	if w.sometimes(3) {
		p.Status, u.words = w.pick(catalog.Statuses...), append(u.words, "status")
	}
	if w.sometimes(3) {
		w.changeLabels(p)
		u.words = append(u.words, "labels", "lab_")
	}
	if w.sometimes(4) {
		p.Slug = w.slug()
	}
	u.what = fmt.Sprintf("put project %+v", *p)
	if p.Description != nil {
		u.what += fmt.Sprintf(" description %q", *p.Description)
	}
}

// changeLabels leaves a label where there was one: without any the map goes, and the comments in it.
func (w *world) changeLabels(p *catalog.Project) {
	had := len(p.Labels) > 0
	p.Labels = nil
	for _, name := range []string{"lab_a", "lab_b", "lab_c", "lab_d"} {
		if value := w.nasty(false); w.sometimes(2) && catalog.CheckLabelValue(value) == "" {
			p.Labels = append(p.Labels, catalog.Label{Name: name, Value: value})
		}
	}
	if had && len(p.Labels) == 0 {
		p.Labels = []catalog.Label{{Name: "lab_e", Value: "${x}"}}
	}
}

func (w *world) clearPrimary(p *catalog.ProjectConfig, u *deed) {
	for i := range p.Domains {
		if d := &p.Domains[i]; d.Primary {
			d.Primary = false
			u.words = append(u.words, label(d.Name), "primary")
		}
	}
}
