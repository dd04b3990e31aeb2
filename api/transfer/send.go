package transfer

import (
	"context"
	"errors"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// Send does the jobs: first the removals, so that names are free; then the changed slugs, one after the other; then
// everything else, several projects at once; then the webhooks, whose projects exist by then. show gets the actions of each project as they are done. An error means
// that Send was interrupted: finished actions stay, and another Export does the rest.
func (e *Export) Send(ctx context.Context, progress Progress, show func([]Action)) (Exported, error) {
	err := e.send(ctx, progress, func(actions []Action) {
		e.out.Actions = append(e.out.Actions, actions...)
		show(actions)
	})
	return e.result(), err
}

func (e *Export) send(ctx context.Context, progress Progress, show func([]Action)) error {
	run := func(step func(ctx context.Context, j *job) []Action) error {
		return client.InOrder(ctx, e.options.Parallel, len(e.jobs),
			func(ctx context.Context, i int) ([]Action, error) { return step(ctx, e.jobs[i]), nil },
			func(i int, actions []Action) error {
				progress.set(i+1, len(e.jobs))
				show(actions)
				return nil
			})
	}
	showSome := func(actions []Action) {
		if len(actions) > 0 {
			show(actions)
		}
	}
	showSome(e.sendWebhooks(ctx, true))
	if err := run(e.removals); err != nil {
		return errInterrupted
	}
	for _, j := range e.jobs {
		if ctx.Err() != nil {
			return errInterrupted
		}
		showSome(e.rename(ctx, j))
	}
	if err := run(e.complete); err != nil {
		return errInterrupted
	}
	showSome(e.sendWebhooks(ctx, false))
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// A sending is one running job.
type sending struct {
	*Export
	ctx     context.Context
	j       *job
	actions []Action
	broken  bool // later steps cannot follow
}

// do makes one change. An error does not affect later steps of the project that do not depend on it.
func (r *sending) do(c Change, f func() error) {
	a := Action{Change: c, Result: Done}
	var kept *client.IgnoredError
	err := r.ctx.Err()
	if err != nil || r.broken {
		a.Result, a.Error = Skipped, "not tried: a step before it failed, or it was interrupted"
		r.actions = append(r.actions, a)
		return
	}
	switch err = f(); {
	case errors.As(err, &kept):
		a.Result, a.Error = Ignored, err.Error()
	case err != nil:
		a.Result, a.Error = Failed, err.Error()
	}
	r.actions = append(r.actions, a)
}

// removals makes the changes that remove.
func (e *Export) removals(ctx context.Context, j *job) []Action {
	r := sending{Export: e, ctx: ctx, j: j}
	for _, c := range j.changes {
		if c.Action != Removed {
			continue
		}
		r.do(c, func() error { return r.remove(c) })
	}
	return r.actions
}

func (r *sending) remove(c Change) error {
	id := r.j.found.Project.ID
	switch c.Kind {
	case catalog.KindDomain:
		return r.remote.DeleteDomain(r.ctx, id, c.id)
	case catalog.KindSMTPConfig:
		return r.remote.DeleteSMTP(r.ctx, id)
	case catalog.KindTemplate:
		return r.remote.DeleteTemplate(r.ctx, id, c.id)
	}
	return r.remote.DeleteProject(r.ctx, id)
}

// rename gives a project of the server its new slug. It comes before everything else, because another project may wait
// for the old one.
func (e *Export) rename(ctx context.Context, j *job) []Action {
	if j.want == nil || j.found == nil || j.found.Project.Slug == j.want.Project.Slug {
		return nil
	}
	r := sending{Export: e, ctx: ctx, j: j}
	r.updateProject()
	return r.actions
}

// updateProject sends the project's own fields, if they differ.
func (r *sending) updateProject() {
	at := slices.IndexFunc(r.j.changes, func(c Change) bool {
		return c.Kind == catalog.KindProject &&
			c.Action == Changed
	})
	if at < 0 {
		return
	}
	c := r.j.changes[at]
	r.j.changes = slices.Delete(slices.Clone(r.j.changes), at, at+1)
	r.do(c, func() error { return r.putProject(r.j.found.Project.ID) })
}

// full reports whether the server's labels and certificates are known.
func (r *sending) full() bool { return r.j.found != nil && r.j.found.Full }

func (r *sending) putProject(id int64) error {
	return r.remote.UpdateProject(r.ctx, id, &r.j.want.Project, r.full())
}

// complete makes the changes that add or change. Settings come before domains: a project is reachable only when it is
// complete.
func (e *Export) complete(ctx context.Context, j *job) []Action {
	r := sending{Export: e, ctx: ctx, j: j}
	if j.want == nil {
		return nil
	}
	if j.found == nil {
		r.create()
	} else {
		r.updateProject()
	}
	if j.found == nil { // it could not be created
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

// create creates the project and reads the result back: the rest is then done as for any other project.
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
		changes, _ := compareProject(have, r.j.want, view{})
		r.j.found, r.j.changes = have, nil
		for _, c := range changes {
			if c.Kind == catalog.KindProject {
				err = r.putProject(made.ID) // for the status, which a new project does not have yet
				continue
			}
			if c.Action == Changed {
				c.Action = Added
			}
			r.j.changes = append(r.j.changes, c)
		}
		if !have.Mail && mails(r.j.want) {
			r.noMail()
		}
		return err
	})
}

// noMail records a project whose mail configuration the server cannot take.
func (r *sending) noMail() {
	r.Export.mu.Lock()
	defer r.Export.mu.Unlock()
	r.Export.mailless++
}

// settings sends the settings of one kind, if they differ.
func (r *sending) settings(kind catalog.Kind, put func() error) {
	if at := slices.IndexFunc(r.j.changes, func(c Change) bool { return c.Kind == kind }); at >= 0 {
		r.do(r.j.changes[at], put)
	}
}

// mail sends SMTP config and templates.
func (r *sending) mail() {
	id, want := r.j.found.Project.ID, r.j.want
	var resend []FieldChange
	if r.options.Passwords == AllPasswords {
		for _, f := range r.neededSecrets(r.j) {
			resend = append(resend, FieldChange{Field: f.Attribute(), Secret: true})
		}
	}
	for _, c := range r.j.changes {
		if c.Action == Removed {
			continue // done in an earlier step
		}
		switch c.Kind {
		case catalog.KindSMTPConfig:
			resend = nil
			r.do(c, func() error { return r.putSMTP(id) })
		case catalog.KindTemplate:
			at := slices.IndexFunc(want.Templates, func(t catalog.Template) bool { return t.Code == c.Name })
			t := want.Templates[at]
			t.MaxAge = t.EffectiveMaxAge()
			if !slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return f.Field == "max_age" }) {
				t.MaxAge = "" // the server may not know it
			}
			if !slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return strings.HasPrefix(f.Field, "locale.") }) {
				t.Locales = nil // likewise
			} else if t.Locales == nil {
				t.Locales = catalog.Locales{}
			}
			r.do(c, func() error { return r.remote.PutTemplate(r.ctx, id, &t) })
		}
	}
	if len(resend) > 0 {
		c := Change{Action: Changed, Kind: catalog.KindSMTPConfig, Project: r.j.slug(), Fields: resend}
		r.do(c, func() error { return r.putSMTP(id) })
	}
}

func (r *sending) putSMTP(id int64) error {
	if len(r.neededSecrets(r.j)) > 0 && r.j.sealed != nil {
		return r.j.sealed
	}
	return r.remote.PutSMTP(r.ctx, id, r.j.want.SMTP, r.j.secrets)
}

// domains changes and adds domains. The domain that stops being the primary one comes first: a project has at most one.
func (r *sending) domains() {
	id := r.j.found.Project.ID
	type step struct {
		change Change
		want   *catalog.Domain
		rank   int
	}
	var steps []step
	for _, c := range r.j.changes {
		if c.Kind != catalog.KindDomain || c.Action == Removed {
			continue
		}
		at := slices.IndexFunc(r.j.want.Domains, func(d catalog.Domain) bool { return d.Name == c.Name })
		s := step{c, &r.j.want.Domains[at], 0}
		switch {
		case c.id == 0:
			s.rank = 2
		case s.want.Primary:
			s.rank = 1
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.rank - b.rank })
	for _, s := range steps {
		r.do(s.change, func() error {
			if s.change.id == 0 {
				return r.remote.CreateDomain(r.ctx, id, s.want)
			}
			return r.remote.UpdateDomain(r.ctx, id, s.change.id, s.want, r.full())
		})
	}
}
