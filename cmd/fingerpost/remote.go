package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/spf13/cobra"

	"fingerpost/resolver/catalog"
)

// maxParallel bounds --parallel.
const maxParallel = 64

// remoteFlags are those of the commands that deal with all that a server has.
type remoteFlags struct {
	connectFlags
	mailURL, mailKey string
	noMail           bool
	parallel         int
}

func (f *remoteFlags) add(cmd *cobra.Command, keyMay string) {
	f.connectFlags.add(cmd, keyMay)
	fl := cmd.Flags()
	fl.StringVar(&f.mailURL, "mail-url", "", "the mail service, where it has another address than --url")
	fl.StringVar(&f.mailKey, "mail-key", "", "its service token, where that is another than --key; better given as FINGERPOST_MAIL_KEY")
	fl.BoolVar(&f.noMail, "no-mail", false, "leave SMTP configs and templates out")
	fl.IntVar(&f.parallel, "parallel", 8, "how many projects are dealt with at once")
}

// connect makes the remote that the flags ask for.
func (f *remoteFlags) connect(t terminal) (*remote, error) {
	if f.parallel < 1 || f.parallel > maxParallel {
		return nil, usage("--parallel must be from 1 to %d", maxParallel)
	}
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	r := &remote{t: t, platform: c, parallel: f.parallel}
	if f.noMail {
		return r, nil
	}
	mail := *c
	mail.mailKey = c.platformKey
	if f.mailKey != "" {
		mail.mailKey = f.mailKey
		mail.veil.add(f.mailKey)
	}
	if f.mailURL != "" {
		if mail.base, err = baseURL("--mail-url", f.mailURL); err != nil {
			return nil, err
		}
	}
	r.mail = &mail
	return r, nil
}

// A remote is a service that speaks the platform API and perhaps the mail API of the source specification. What it has
// beyond that (paging, the flat form on request, one template's text) is used where it is there.
type remote struct {
	t        terminal // where progress is shown
	platform *client
	mail     *client // nil: not asked
	parallel int

	nestedOnly  atomic.Bool  // the flat form of resolve is not to be had
	mailAnswers atomic.Bool  // the mail API has answered for a project
	mailMisses  atomic.Int32 // the projects for which it did not
}

// A found is a project as a server has it, its settings as they are in force.
type found struct {
	catalog.ProjectConfig
	// flat: what only the flat resolve form shows is in the settings, too.
	flat bool
	// mail: SMTP config and templates are known. Without it they are empty.
	mail bool
	// jwtSecret: the server has one. It was not kept.
	jwtSecret bool
	untold    untold
	// shared are the default templates, which the server lists with each project.
	shared []catalog.Template
	// odd says what could not be understood, for people.
	odd []string
}

// The fields that each API has, beside id, uuid and owner. What files can say beyond these is not to be had over it.
var (
	projectFields  = []string{"name", "slug", "description", "status"}
	domainFields   = []string{"domain", "primary", "active"}
	serviceFields  = []string{"authEnabled", "mailEnabled", "smsEnabled", "auditEnabled"}
	authFields     = []string{"registrationMode", "emailVerificationRequired", "phoneVerificationRequired", "approvalRequired", "inviteOnly", "twoFactorRequired"}
	smtpFields     = []string{"host", "port", "username", "fromEmail", "fromName", "replyTo", "sslEnabled", "tlsEnabled", "active"}
	templateFields = []string{"code", "name", "subjectTemplate", "bodyHtml", "bodyText", "active", "maxAge"}

	flatServiceFields = []string{"smsProvider", "auditRetentionDays"}
	flatAuthFields    = []string{"jwtEnabled", "jwtExpiresIn", "refreshTokenEnabled", "refreshTokenExpiresIn", "sessionTimeout",
		"passwordMinLength", "passwordRequireUppercase", "passwordRequireNumbers"}
)

// untold are the fields of templates that a server does not tell, by code: the source specification has no call for the
// bodies of one, and no maxAge.
type untold map[string][]string

func (u untold) bodies(code string) bool { return slices.Contains(u[code], "bodyHtml") }

// bodiless counts the templates whose bodies are not told.
func (u untold) bodiless() (n int) {
	for code := range u {
		if u.bodies(code) {
			n++
		}
	}
	return n
}

// A row is one object as JSON.
type row map[string]json.RawMessage

// fill reads those of the fields that are named and there. Null leaves a field that cannot be null as it is.
func (r row) fill(fields []catalog.Field, names []string) error {
	for _, f := range fields {
		raw, there := r[f.Name]
		if !there || !slices.Contains(names, f.Name) {
			continue
		}
		if err := json.Unmarshal(raw, f.Value); err != nil {
			return fmt.Errorf("field %s of the answer: %w", f.Name, err)
		}
	}
	return nil
}

// number reads an id, which one form of the API writes as a string.
func (r row) number(name string) int64 {
	n, err := strconv.ParseInt(strings.Trim(string(r[name]), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r row) text(name string) (s string) {
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

func (r row) project() (catalog.Project, error) {
	p := catalog.Project{ID: r.number("id"), Status: catalog.StatusDraft}
	p.UUID, _ = catalog.ParseUUID(r.text("uuid"))
	err := r.fill(append(p.Fields(), catalog.Field{Name: "slug", Value: &p.Slug}), projectFields)
	p.Status = strings.ToUpper(p.Status) // one form of the API has it in lower case
	if err == nil && p.ID <= 0 {
		err = fmt.Errorf("project %q of the answer has no id", printable(p.Slug))
	}
	return p, err
}

// pageSize is the most that the specification allows.
const pageSize = 100

// list reads a whole list, page by page where the server has pages. A list that changes meanwhile is read anew.
func (r *remote) list(ctx context.Context, path string) (rows []row, err error) {
	const rounds = 3
	for range rounds {
		var whole bool
		if rows, whole, err = r.pages(ctx, path); err != nil || whole {
			return rows, err
		}
	}
	return nil, fmt.Errorf("GET %s: the list changed while it was read, %d times: try again", path, rounds)
}

// pages reads all pages once. whole is false where the list has changed.
func (r *remote) pages(ctx context.Context, path string) (all []row, whole bool, err error) {
	seen, total := map[string]bool{}, -1
	for page := 1; ; page++ {
		var rows []row
		meta, err := r.platform.call(ctx, http.MethodGet, fmt.Sprintf("%s?page=%d&limit=%d", path, page, pageSize), nil, &rows)
		if page == 1 && refusedWith(err, http.StatusBadRequest) { // a server without paging may refuse to be asked for it
			rows = nil
			meta, err = r.platform.call(ctx, http.MethodGet, path, nil, &rows)
		}
		if err != nil {
			return nil, false, err
		}
		for _, x := range rows {
			if id := string(x["id"]); !seen[id] {
				seen[id] = true
				all = append(all, x)
			}
		}
		if meta == nil {
			return all, true, nil
		}
		if total >= 0 && meta.Total != total { // what stood between two pages may be on neither
			return nil, false, nil
		}
		if total = meta.Total; page >= meta.TotalPages || len(rows) == 0 {
			return all, len(all) == total, nil
		}
	}
}

const projectsPath = "/api/platform/projects"

func projectPath(id int64, rest string) string {
	return projectsPath + "/" + strconv.FormatInt(id, 10) + rest
}

// projects lists all that the key may see.
func (r *remote) projects(ctx context.Context) ([]catalog.Project, error) {
	rows, err := r.list(ctx, projectsPath)
	if err != nil {
		return nil, err
	}
	projects := make([]catalog.Project, 0, len(rows))
	for _, x := range rows {
		p, err := x.project()
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", projectsPath, err)
		}
		projects = append(projects, p)
	}
	return projects, nil
}

// project reads all that belongs to one.
func (r *remote) project(ctx context.Context, p *catalog.Project) (*found, error) {
	f := &found{untold: untold{}}
	f.Project = *p
	f.Service, f.Auth = catalog.NewServiceSettings(), catalog.NewAuthSettings()
	rows, err := r.list(ctx, projectPath(p.ID, "/domains"))
	if err != nil {
		return nil, err
	}
	for _, x := range rows {
		d := catalog.Domain{ID: x.number("id"), ProjectID: p.ID, Active: true}
		if err := x.fill(append(d.Fields(), catalog.Field{Name: "domain", Value: &d.Name}), domainFields); err != nil {
			return nil, fmt.Errorf("GET %s: %w", projectPath(p.ID, "/domains"), err)
		}
		if name, err := catalog.ParseDomain(d.Name); err != nil {
			f.odd = append(f.odd, fmt.Sprintf("domain %s %v", printable(strconv.Quote(d.Name)), err))
		} else {
			d.Name = name
		}
		f.Domains = append(f.Domains, d)
	}
	if err := r.settings(ctx, p.ID, "/service-settings", f.Service.Fields(), serviceFields); err != nil {
		return nil, err
	}
	if err := r.settings(ctx, p.ID, "/auth-settings", f.Auth.Fields(), authFields); err != nil {
		return nil, err
	}
	if err := r.flat(ctx, f); err != nil {
		return nil, err
	}
	return f, r.mailOf(ctx, f)
}

func (r *remote) settings(ctx context.Context, project int64, rest string, fields []catalog.Field, names []string) error {
	var x row
	path := projectPath(project, rest)
	if _, err := r.platform.call(ctx, http.MethodGet, path, nil, &x); err != nil {
		return err
	}
	if err := x.fill(fields, names); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// flat adds what only the flat form of resolve shows. A project is to be seen there through its active domains only, and
// not while it is suspended.
func (r *remote) flat(ctx context.Context, f *found) error {
	if r.nestedOnly.Load() || f.Project.Status == catalog.StatusSuspended {
		return nil
	}
	for i := range f.Domains {
		d := &f.Domains[i]
		if !d.Active || d.Wildcard() {
			continue
		}
		var x struct {
			Project                       row
			AuthSettings, ServiceSettings row
		}
		path := projectsPath + "/resolve?form=flat&domain=" + d.Name
		_, err := r.platform.callAgain(ctx, http.MethodGet, path, nil, &x, http.StatusTooManyRequests)
		switch {
		case refusedWith(err, http.StatusServiceUnavailable): // also where the server cannot open the project's secret
			return nil
		case refusedWith(err, http.StatusBadRequest):
			r.nestedOnly.Store(true)
			return nil
		case refusedWith(err, http.StatusForbidden, http.StatusNotFound):
			return nil
		case err != nil:
			return err
		}
		if _, isFlat := x.AuthSettings["jwtExpiresIn"]; !isFlat {
			r.nestedOnly.Store(true)
			return nil
		}
		if x.Project.text("slug") != f.Project.Slug {
			return nil
		}
		f.flat, f.jwtSecret = true, x.AuthSettings.text("jwtSecret") != ""
		if err = x.AuthSettings.fill(f.Auth.Fields(), flatAuthFields); err == nil {
			err = x.ServiceSettings.fill(f.Service.Fields(), flatServiceFields)
		}
		return err
	}
	return nil
}

// printable replaces what would act on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// inOrder calls get for 0 … n-1, several at once, and use with each result, one after the other and in order. It holds no
// more than a few results beyond those in the making, and stops with the first error.
func inOrder[T any](ctx context.Context, parallel, n int, get func(ctx context.Context, i int) (T, error), use func(i int, v T) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		v   T
		err error
	}
	slots := make(chan chan result, parallel)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		defer close(slots)
		for i := range n {
			slot := make(chan result, 1)
			select {
			case slots <- slot:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				v, err := get(ctx, i)
				slot <- result{v, err}
			})
		}
	})
	i := 0
	for slot := range slots {
		r := <-slot
		if r.err != nil {
			return r.err
		}
		if err := use(i, r.v); err != nil {
			return err
		}
		i++
	}
	return ctx.Err()
}
