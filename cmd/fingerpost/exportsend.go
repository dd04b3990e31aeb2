package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fingerpost/api/client"
	"fingerpost/configsrc/hclfile"
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
		return client.InOrder(ctx, e.flags.parallel, len(e.jobs),
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
		what += " of project " + hclfile.Quote(a.Project)
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
	var kept *client.IgnoredError
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
	f := r.j.found
	id := f.Project.ID
	switch c.Kind {
	case catalog.KindDomain:
		at := slices.IndexFunc(f.Domains, func(d catalog.Domain) bool { return d.Name == c.Name })
		return r.remote.DeleteDomain(r.ctx, id, f.Domains[at].ID)
	case catalog.KindSMTPConfig:
		return r.remote.DeleteSMTP(r.ctx, id)
	case catalog.KindTemplate:
		at := slices.IndexFunc(f.Templates, func(t catalog.Template) bool { return t.Code == c.Name })
		return r.remote.DeleteTemplate(r.ctx, id, f.Templates[at].ID)
	}
	return r.remote.DeleteProject(r.ctx, id)
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
	return r.remote.UpdateProject(r.ctx, id, &r.j.want.Project)
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
	id := j.found.Project.ID
	r.settings(catalog.KindServiceSettings, func() error { return e.remote.PutServiceSettings(ctx, id, &j.want.Service) })
	r.settings(catalog.KindAuthSettings, func() error { return e.remote.PutAuthSettings(ctx, id, &j.want.Auth) })
	r.mail()
	r.domains()
	return r.actions
}

// create makes the project, and reads back what the server has made of it: the rest is then done as for any other.
func (r *sending) create() {
	r.do(r.j.changes[0], func() error {
		made, err := r.remote.CreateProject(r.ctx, &r.j.want.Project)
		if err != nil {
			return err
		}
		have, err := r.remote.Project(r.ctx, &made)
		if err != nil {
			return err
		}
		changes, _ := compareProject(have, r.j.want, apiView())
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
		if !have.Mail && mails(r.j.want) {
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

// settings sends the settings of one kind, if they differ.
func (r *sending) settings(kind catalog.Kind, put func() error) {
	if at := slices.IndexFunc(r.j.changes, func(c change) bool { return c.Kind == kind }); at >= 0 {
		r.do(r.j.changes[at], put)
	}
}

// mail sends SMTP config and templates.
func (r *sending) mail() {
	id, want := r.j.found.Project.ID, r.j.want
	resend := r.flags.passwords == "all" && want.SMTP != nil && want.SMTP.Password.Source != catalog.SecretNone && r.j.found.Mail
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
			t.MaxAge = t.EffectiveMaxAge()
			if !slices.ContainsFunc(c.Fields, func(f fieldChange) bool { return f.Field == "max_age" }) {
				t.MaxAge = "" // the server may not know it
			}
			r.do(c, func() error { return r.remote.PutTemplate(r.ctx, id, &t) })
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
	return r.remote.PutSMTP(r.ctx, id, r.j.want.SMTP, r.j.password)
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
		r.do(r.j.changes[at], func() error {
			if p.have == nil {
				return r.remote.CreateDomain(r.ctx, id, p.want)
			}
			return r.remote.UpdateDomain(r.ctx, id, p.have.ID, p.want)
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
