package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// execute does the jobs: first what takes away, so that names are free; then the slugs that change, one after the other;
// then all else, several projects at once. An error means that it was interrupted.
func (e *exporter) execute(ctx context.Context, t terminal) error {
	sent := t.progress("projects sent")
	defer sent.end()
	show := func(actions []action) {
		e.out.Actions = append(e.out.Actions, actions...)
		if e.flags.asJSON {
			return
		}
		sent.above(func() {
			for _, a := range actions {
				a.print(t)
			}
		})
	}
	run := func(step func(ctx context.Context, j *job) []action) error {
		return inOrder(ctx, e.remote.parallel, len(e.jobs),
			func(ctx context.Context, i int) ([]action, error) { return step(ctx, e.jobs[i]), nil },
			func(i int, actions []action) error {
				sent.set(i+1, len(e.jobs))
				show(actions)
				return nil
			})
	}
	if err := run(e.removals); err != nil {
		return errInterrupted
	}
	for _, j := range e.jobs {
		if ctx.Err() != nil {
			return errInterrupted
		}
		if actions := e.rename(ctx, j); len(actions) > 0 {
			show(actions)
		}
	}
	if err := run(e.send); err != nil {
		return errInterrupted
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

func (a *action) print(t terminal) {
	what := a.title()
	if a.Kind != catalog.KindProject && a.Project != "" {
		what += " of project " + hcledit.Quote(a.Project)
	}
	if a.Result == resultDone {
		fmt.Fprintf(t.out, "%s %s\n", marks[a.Action], what)
		return
	}
	fmt.Fprintf(t.err, "%s: %s: %s\n", a.Result, what, a.Error)
}

// A sending is one job under way.
type sending struct {
	*exporter
	ctx     context.Context
	j       *job
	actions []action
	broken  bool // nothing can follow
}

// do makes one change. Its error leaves the later steps of the project alone, where they do not depend on it.
func (r *sending) do(c change, f func() error) {
	a := action{change: c, Result: resultDone}
	var kept *ignoredError
	err := r.ctx.Err()
	if err != nil || r.broken {
		a.Result, a.Error = resultSkipped, "not tried: a step before it failed, or it was interrupted"
		r.actions = append(r.actions, a)
		return
	}
	switch err = f(); {
	case errors.As(err, &kept):
		a.Result, a.Error = resultIgnored, err.Error()
	case err != nil:
		a.Result, a.Error = resultFailed, err.Error()
	}
	r.actions = append(r.actions, a)
}

// An ignoredError is a success of the server's after which a field is not as it was sent.
type ignoredError struct{ fields []string }

func (e *ignoredError) Error() string {
	return "the server answers success, but does not take over " + strings.Join(e.fields, ", ")
}

// write sends fields and compares what the server has then.
func write(ctx context.Context, c *client, method, path string, fields []catalog.Field, names []string, more map[string]any) (row, error) {
	body := map[string]any{}
	for k, v := range more {
		body[k] = v
	}
	for _, f := range fields {
		if slices.Contains(names, f.Name) {
			body[f.Name] = plainValue(f.Value)
		}
	}
	var x row
	if _, err := c.call(ctx, method, path, body, &x); err != nil {
		return nil, err
	}
	var kept []string
	for _, f := range fields {
		if raw, told := x[f.Name]; told && slices.Contains(names, f.Name) && !sameJSON(raw, f.Value) {
			kept = append(kept, catalog.Snake(f.Name))
		}
	}
	if kept != nil {
		return x, &ignoredError{kept}
	}
	return x, nil
}

// sameJSON reports whether a field of an answer is what was sent; some forms of the API write enums in lower case.
func sameJSON(raw json.RawMessage, sent any) bool {
	got := reflect.New(reflect.TypeOf(sent).Elem())
	if json.Unmarshal(raw, got.Interface()) != nil || reflect.DeepEqual(got.Interface(), sent) {
		return true // what cannot be read is no word on whether it was taken over
	}
	a, isText := got.Interface().(*string)
	return isText && strings.EqualFold(*a, *sent.(*string))
}

// removals makes what takes away.
func (e *exporter) removals(ctx context.Context, j *job) []action {
	r := sending{exporter: e, ctx: ctx, j: j}
	for _, c := range j.changes {
		if c.Action != actionRemove {
			continue
		}
		r.do(c, func() error { return r.remove(c) })
	}
	return r.actions
}

func (r *sending) remove(c change) error {
	id := r.j.found.Project.ID
	path, on, again := projectPath(id, ""), r.remote.platform, ""
	switch c.Kind {
	case catalog.KindDomain:
		at := slices.IndexFunc(r.j.found.Domains, func(d catalog.Domain) bool { return d.Name == c.Name })
		path = projectPath(id, "/domains/"+strconv.FormatInt(r.j.found.Domains[at].ID, 10))
		again = "a domain"
	case catalog.KindSMTPConfig:
		path, on, again = mailPath(id, "/smtp-config"), r.remote.mail, "an SMTP config"
	case catalog.KindTemplate:
		at := slices.IndexFunc(r.j.found.Templates, func(t catalog.Template) bool { return t.Code == c.Name })
		path, on = mailPath(id, "/templates/"+strconv.FormatInt(r.j.found.Templates[at].ID, 10)), r.remote.mail
		again = "a template"
	}
	_, err := on.call(r.ctx, http.MethodDelete, path, nil, nil)
	if absent(err) && again != "" {
		return fmt.Errorf("the server has no call that removes %s, or it is gone already: %w", again, err)
	}
	return err
}

// rename gives a project of the server its new slug. It comes before all else, since another may wait for the old one.
func (e *exporter) rename(ctx context.Context, j *job) []action {
	if j.want == nil || j.found == nil || j.found.Project.Slug == j.want.Project.Slug {
		return nil
	}
	r := sending{exporter: e, ctx: ctx, j: j}
	r.updateProject()
	return r.actions
}

// updateProject sends the project's own fields, if they differ.
func (r *sending) updateProject() {
	at := slices.IndexFunc(r.j.changes, func(c change) bool { return c.Kind == catalog.KindProject && c.Action == actionChange })
	if at < 0 {
		return
	}
	c := r.j.changes[at]
	r.j.changes = slices.Delete(slices.Clone(r.j.changes), at, at+1)
	r.do(c, func() error { return r.putProject(r.j.found.Project.ID) })
}

func (r *sending) putProject(id int64) error {
	p := &r.j.want.Project
	fields := append(p.Fields(), catalog.Field{Name: "slug", Value: &p.Slug})
	_, err := write(r.ctx, r.remote.platform, http.MethodPut, projectPath(id, ""), fields, projectFields, nil)
	return err
}

// send makes what adds and changes. Settings come before domains: a project is reachable only when it is complete.
func (e *exporter) send(ctx context.Context, j *job) []action {
	r := sending{exporter: e, ctx: ctx, j: j}
	if j.want == nil {
		return nil
	}
	if j.found == nil {
		r.create()
	} else {
		r.updateProject()
	}
	if j.found == nil { // it could not be made
		r.broken = true
		for _, c := range j.changes {
			if c.Kind != catalog.KindProject {
				r.do(c, nil)
			}
		}
		return r.actions
	}
	r.settings(catalog.KindServiceSettings, "/service-settings", j.want.Service.Fields(), serviceFields)
	r.settings(catalog.KindAuthSettings, "/auth-settings", j.want.Auth.Fields(), authFields)
	r.mail()
	r.domains()
	return r.actions
}

// create makes the project, and reads back what the server has made of it: the rest is then done as for any other.
func (r *sending) create() {
	p := &r.j.want.Project
	r.do(r.j.changes[0], func() error {
		fields := append(p.Fields(), catalog.Field{Name: "slug", Value: &p.Slug})
		x, err := write(r.ctx, r.remote.platform, http.MethodPost, projectsPath, fields, []string{"name", "slug", "description"}, nil)
		if err != nil {
			return err
		}
		made, err := x.project()
		if err != nil {
			return err
		}
		have, err := r.remote.project(r.ctx, &made)
		if err != nil {
			return err
		}
		changes, _ := compareProject(have, r.j.want, apiView)
		r.j.found, r.j.changes = have, nil
		for _, c := range changes {
			if c.Kind == catalog.KindProject {
				err = r.putProject(made.ID) // the status, which a new project does not have yet
				continue
			}
			if c.Action == actionChange {
				c.Action = actionAdd
			}
			r.j.changes = append(r.j.changes, c)
		}
		if !have.mail && mails(r.j.want) {
			r.noMail()
		}
		return err
	})
}

// noMail notes a project whose mail half has nowhere to go.
func (r *sending) noMail() {
	r.exporter.mu.Lock()
	defer r.exporter.mu.Unlock()
	r.exporter.mailless++
}

func (r *sending) settings(kind catalog.Kind, rest string, fields []catalog.Field, names []string) {
	at := slices.IndexFunc(r.j.changes, func(c change) bool { return c.Kind == kind })
	if at < 0 {
		return
	}
	r.do(r.j.changes[at], func() error {
		_, err := write(r.ctx, r.remote.platform, http.MethodPut, projectPath(r.j.found.Project.ID, rest), fields, names, nil)
		return err
	})
}

// mail sends SMTP config and templates.
func (r *sending) mail() {
	id, want := r.j.found.Project.ID, r.j.want
	resend := r.flags.passwords == "all" && want.SMTP != nil && want.SMTP.Password.Source != catalog.SecretNone && r.j.found.mail
	for _, c := range r.j.changes {
		if c.Action == actionRemove {
			continue // done before all else
		}
		switch c.Kind {
		case catalog.KindSMTPConfig:
			resend = false
			r.do(c, func() error { return r.putSMTP(id) })
		case catalog.KindTemplate:
			at := slices.IndexFunc(want.Templates, func(t catalog.Template) bool { return t.Code == c.Name })
			t := want.Templates[at]
			names := templateFields
			if !slices.ContainsFunc(c.Fields, func(f fieldChange) bool { return f.Field == "max_age" }) { // the server may not know it
				names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "maxAge" })
			}
			t.MaxAge = t.EffectiveMaxAge()
			r.do(c, func() error {
				return r.save(mailPath(id, "/templates"), append(t.Fields(), catalog.Field{Name: "code", Value: &t.Code}), names, nil)
			})
		}
	}
	if resend {
		c := change{actionChange, catalog.KindSMTPConfig, r.j.slug(), "", []fieldChange{{Field: "password", Secret: true}}}
		r.do(c, func() error { return r.putSMTP(id) })
	}
}

func (r *sending) putSMTP(id int64) error {
	if r.needsPassword(r.j) && r.j.sealed != nil {
		return r.j.sealed
	}
	var more map[string]any
	if r.j.password != "" {
		more = map[string]any{"password": r.j.password}
	}
	return r.save(mailPath(id, "/smtp-config"), r.j.want.SMTP.Fields(), smtpFields, more)
}

// save upserts. The source specification does not say by which method.
func (r *sending) save(path string, fields []catalog.Field, names []string, more map[string]any) error {
	_, err := write(r.ctx, r.remote.mail, http.MethodPut, path, fields, names, more)
	if absent(err) {
		_, err = write(r.ctx, r.remote.mail, http.MethodPost, path, fields, names, more)
	}
	return err
}

// domains changes and adds. Whoever gives up being the primary one comes first: there is one at most.
func (r *sending) domains() {
	id := r.j.found.Project.ID
	pairs := pairDomains(r.j.found.Domains, r.j.want.Domains)
	slices.SortStableFunc(pairs, func(a, b domainPair) int { return rank(a) - rank(b) })
	for _, p := range pairs {
		if p.want == nil {
			continue
		}
		at := slices.IndexFunc(r.j.changes, func(c change) bool {
			return c.Kind == catalog.KindDomain && c.Name == p.want.Name && c.Action != actionRemove
		})
		if at < 0 {
			continue
		}
		method, path := http.MethodPost, projectPath(id, "/domains")
		if p.have != nil {
			method, path = http.MethodPut, projectPath(id, "/domains/"+strconv.FormatInt(p.have.ID, 10))
		}
		r.do(r.j.changes[at], func() error {
			_, err := write(r.ctx, r.remote.platform, method, path,
				append(p.want.Fields(), catalog.Field{Name: "domain", Value: &p.want.Name}), domainFields, nil)
			return err
		})
	}
}

func rank(p domainPair) int {
	switch {
	case p.want == nil || p.have != nil && !p.want.Primary:
		return 0
	case p.have != nil:
		return 1
	}
	return 2
}
