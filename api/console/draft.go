package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A draft is a change that a person has seen the diff of and not saved yet. It lives in the session, so that no
// password travels back into a page, and is used once. It does not change once the session has it.
type draft struct {
	ID, Title, Back string
	Proposal        string // that it was made in, or ""
	Made            time.Time
	Diff            string
	Problems        []client.Problem
	Error           *failure

	kind     string
	projects []string // slugs of a change of several
	id       string   // of what is edited, see form.Form.At
	sent     url.Values
	edit     client.Edit
}

// page is the path of the page with the diff.
func (d *draft) page() string { return Prefix + "drafts/" + d.ID }

// EditLink leads back to the form, "" if there was none.
func (d *draft) EditLink() string {
	if d.sent == nil {
		return ""
	}
	return link(Prefix+"edit", "kind", d.kind, "project", d.edit.Project, "id", d.id, "draft", d.ID)
}

// Anew reports whether the save makes values of its own: those of a dry run are not those of the save.
func (d *draft) Anew() bool {
	return d.kind == "key" || d.edit.Verb == client.Rotate || strings.Contains(d.Diff, `sealed("`)
}

var existsAlready = &failure{Status: http.StatusPreconditionFailed,
	Message: "This exists already, and was not replaced. Edit that one."}

// Live reports whether the change cannot be proposed.
func (d *draft) Live() bool { return form.Live(d.kind) || d.edit.Verb == client.Rotate }

// makesSecret reports whether the service makes the secret of a new webhook.
func (d *draft) makesSecret() bool {
	_, given := d.edit.Fields["secret"]
	return d.kind == "webhook" && d.edit.Verb == client.Create && !given
}

// Deletes reports whether the change deletes something.
func (d *draft) Deletes() bool { return d.edit.Verb == client.Delete }

// addDraft keeps a draft, and gives it its id if it has none.
func (c *Console) addDraft(s *session, d *draft) {
	if d.ID == "" {
		d.ID = random()
	}
	c.sessions.keepForm(s, d.ID, d.bytes(), d)
}

// bytes is about the memory of a draft's texts; its edit shares those of the form.
func (d *draft) bytes() int {
	n := len(d.Diff)
	for _, values := range d.sent {
		for _, value := range values {
			n += len(value)
		}
	}
	return n
}

func (s *session) draft(id string) *draft { return keptAs[draft](s, id) }

// own lists the sessions whose drafts are those of a session: itself or, if a person has signed in at a provider, all
// of that person's.
func (c *Console) own(s *session) []*session {
	if s.person == nil {
		return []*session{s}
	}
	return c.sessions.list(s.Key().ID) // a key of the files has another id
}

// holder returns the session that has a draft, s if none has it.
func (c *Console) holder(s *session, id string) *session {
	for _, o := range c.own(s) {
		if o.draft(id) != nil {
			return o
		}
	}
	return s
}

// seesDraft reports whether a draft is shown. The rules of a person may have changed since it was made.
func (c *Console) seesDraft(s *session, d *draft) bool {
	r := c.rightsOn(s.Key(), d)
	return s.person == nil || d.projects != nil && r.Edit || r.form(d.kind, d.edit.Project)
}

// A draftRow is a line of the list of drafts.
type draftRow struct {
	*draft
	Page    string
	Of      string // the name of its project, or ""
	Another bool   // it was made in another browser

	order uint64
}

// drafts lists what waits to be saved, the newest first.
func (c *Console) drafts(ctx context.Context, s *session) (rows []draftRow) {
	for _, o := range c.own(s) {
		o.mu.Lock()
		for _, k := range o.kept {
			if d, is := k.what.(*draft); is {
				rows = append(rows, draftRow{draft: d, Page: d.page(), Another: o != s, order: k.order})
			}
		}
		o.mu.Unlock()
	}
	rows = slices.DeleteFunc(rows, func(row draftRow) bool { return !c.seesDraft(s, row.draft) })
	slices.SortFunc(rows, func(a, b draftRow) int { return cmp.Compare(b.order, a.order) })
	name := c.projectNames(ctx, s)
	for i := range rows {
		if id := rows[i].edit.Project; id != 0 {
			rows[i].Of = name(id)
		}
	}
	return rows
}

// takeDraft removes a draft from the session, so that one request alone saves it. nil: there is none.
func (s *session) takeDraft(id string) *draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if d, is := k.what.(*draft); is && k.id == id {
			s.forget(id)
			return d
		}
	}
	return nil
}

var goneDraft = &failure{Status: http.StatusNotFound,
	Message: "This change is not waiting any more: it was saved, dropped, or forgotten after newer ones. Look at the " +
		"project, and begin again if it is missing there."}

func (c *Console) showDraft(w http.ResponseWriter, r *http.Request, s *session) error {
	d := c.holder(s, r.PathValue("id")).draft(r.PathValue("id"))
	if d == nil {
		return goneDraft
	}
	if !c.seesDraft(s, d) {
		return c.refuseForm(s.Key(), d.kind, d.edit.Project)
	}
	return c.render(w, r, s, http.StatusOK, "draft", d.Title, d)
}

// saveDraft saves a change, proposes it, or drops it.
func (c *Console) saveDraft(w http.ResponseWriter, r *http.Request, s *session) error {
	d := c.holder(s, r.PathValue("id")).takeDraft(r.PathValue("id"))
	if d == nil {
		return goneDraft
	}
	switch r.PostFormValue("do") {
	case "drop":
		s.say("The change was dropped.")
		return seeOther(w, r, d.Back)
	case "save", "propose":
	default:
		return c.showRefused(w, r, s, d, &failure{Status: http.StatusBadRequest,
			Message: "The form does not say what to do."})
	}
	save := d.edit
	save.Message = strings.TrimSpace(r.PostFormValue("message"))
	if d.Proposal == "" && r.PostFormValue("do") == "propose" {
		save.Proposal = strings.TrimSpace(r.PostFormValue("proposal"))
		if bad := d.proposable(save.Proposal); bad != "" {
			return c.showRefused(w, r, s, d, &failure{Status: http.StatusBadRequest, Message: bad})
		}
	}
	made, err := c.api(s).Make(r.Context(), &save)
	if err != nil {
		return c.notSaved(w, r, s, d, save.Proposal, failureOf(err))
	}
	c.saved(r.Context(), s, d, &made, save.Proposal)
	to := d.Back
	switch {
	case made.Project != 0 && d.kind == "project" && save.Proposal == d.Proposal:
		to = projectPage(made.Project)
	case d.kind == "project" && d.Deletes():
		to = Prefix + "projects"
	case save.Proposal != d.Proposal:
		to = Prefix + "proposals/" + save.Proposal
	}
	return seeOther(w, r, to)
}

// proposable returns why a draft cannot be proposed under a name, "" if it can.
func (d *draft) proposable(name string) string {
	switch {
	case d.kind == "key":
		return "Keys are always live: a change of them cannot be proposed."
	case d.Live():
		return "A rotation is always live: it cannot be proposed."
	case !catalog.ValidProposalName(name):
		return "A proposal needs a name, such as rename-shop. It must " + catalog.ProposalNameRule + "."
	}
	return ""
}

// notSaved shows why a draft was not saved: the fields that differ if somebody has changed the same meanwhile, else
// the diff again.
func (c *Console) notSaved(w http.ResponseWriter, r *http.Request, s *session, d *draft, proposal string,
	fail *failure) error {
	changed := fail.Status == http.StatusPreconditionFailed
	switch {
	case changed && proposal != d.Proposal:
		fail = &failure{Status: fail.Status, Message: "The proposal " + proposal +
			" has changed this already. Open it on the page Changes, work in it, and edit it there."}
	case changed && d.edit.IfNew:
		fail = existsAlready
	case (changed || fail.Code == catalog.CodeFileChanged) && d.sent != nil && !d.Deletes():
		if f, err := c.formOf(r, s, d.kind, say.Text(d.edit.Project), d.id); err == nil {
			return c.conflict(w, r, s, f, d.sent)
		}
	}
	return c.showRefused(w, r, s, d, fail)
}

// maxCommitWait is how long a save waits for the name of its commit. Git gathers the writes of 100 ms.
const maxCommitWait = 2 * time.Second

// commitOf returns the commit of a write, as soon as the audit trail knows it; "" if that takes too long. made has it where
// the server waits for commits.
func (c *Console) commitOf(ctx context.Context, s *session, made *client.Made) string {
	if made.Commit != "" || !c.o.Git || made.Request == "" {
		return made.Commit
	}
	ctx, cancel := context.WithTimeout(ctx, maxCommitWait)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		page, err := c.api(s).AuditPage(ctx, query("requestId", made.Request, "limit", "1"))
		if err != nil || len(page.Rows) == 0 { // it has changed nothing
			return ""
		}
		if commit := say.Text(page.Rows[0].Commit); commit != "" {
			return commit
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ""
		}
	}
}

// saved tells the person what has become of the change.
func (c *Console) saved(ctx context.Context, s *session, d *draft, made *client.Made, proposal string) {
	commit := ""
	if proposal == "" {
		commit = c.commitOf(ctx, s, made)
	}
	switch {
	case proposal != "" && d.makesSecret():
		s.say("Proposed on the branch " + made.Branch + ". Nothing is live before somebody applies it. The secret of the " +
			"webhook was made, and nobody has seen it: rotate it once the webhook is live.")
	case proposal != "":
		s.say("Proposed on the branch " + made.Branch + ". Nothing is live before somebody applies it.")
	case commit != "":
		s.say("Saved as commit " + commit[:min(len(commit), 10)] + ", and live.")
	case c.o.Git:
		s.say("Saved, and live. Git has not made the commit yet; the page Changes names it once it is there.")
	default:
		s.say("Saved into the file, and live.")
	}
	if made.Key != "" {
		s.show(onceShown{"key", made.Key})
	}
	if made.Secret != "" {
		s.show(onceShown{"secret of the webhook", made.Secret})
	}
}

// showRefused gives a draft back to the session, and shows the diff again with the reason why it was not saved.
func (c *Console) showRefused(w http.ResponseWriter, r *http.Request, s *session, d *draft, f *failure) error {
	c.addDraft(s, d)
	again := *d
	again.Error = f
	return c.render(w, r, s, f.Status, "draft", d.Title, &again)
}
