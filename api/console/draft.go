package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A draft is a change that a person has seen the diff of and not saved yet. It lives in the session, so that no
// password travels back into a page, and is used once.
type draft struct {
	ID, Title, Back string
	Proposal        string // that it was made in, or ""
	Diff            string
	Problems        []client.Problem
	Error           *failure

	kind   string
	id     int64 // of what is edited
	sent   url.Values
	edit   client.Edit
	saving bool
}

// EditLink leads back to the form, "" if there was none.
func (d *draft) EditLink() string {
	if d.sent == nil {
		return ""
	}
	return link(Prefix+"edit", "kind", d.kind, "project", d.edit.Project, "id", d.id, "draft", d.ID)
}

// Anew reports whether the save makes values of its own: those of a dry run are not those of the save.
func (d *draft) Anew() bool {
	return d.kind == "key" || strings.Contains(d.Diff, `sealed("`)
}

var existsAlready = &failure{Status: http.StatusPreconditionFailed,
	Message: "This exists already, and was not replaced. Edit that one."}

// Live reports whether the change cannot be proposed.
func (d *draft) Live() bool { return editable[d.kind].live }

// Deletes reports whether the change deletes something.
func (d *draft) Deletes() bool { return d.edit.Verb == client.Delete }

// addDraft gives a draft its id, and forgets the oldest one if there are many.
func (s *session) addDraft(d *draft) {
	d.ID = random()
	s.mu.Lock()
	defer s.mu.Unlock()
	room := maxDraftBytes - d.bytes()
	at := len(s.drafts) // of the oldest that stays
	for at > 0 && len(s.drafts)-at+1 < maxDrafts && room >= s.drafts[at-1].bytes() {
		at--
		room -= s.drafts[at].bytes()
	}
	s.drafts = append(s.drafts[at:len(s.drafts):len(s.drafts)], d)
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

func (s *session) draft(id string) *draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.drafts {
		if id != "" && d.ID == id {
			return d
		}
	}
	return nil
}

// beginSave lets one request save a draft.
func (s *session) beginSave(d *draft) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.saving {
		return false
	}
	d.saving = true
	return true
}

// drop forgets a draft that is done.
func (s *session) drop(d *draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.drafts {
		if s.drafts[i] == d {
			s.drafts = append(s.drafts[:i:i], s.drafts[i+1:]...)
			return
		}
	}
}

// endSave lets a draft that was not saved be saved again.
func (s *session) endSave(d *draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.saving = false
}

var goneDraft = &failure{Status: http.StatusNotFound,
	Message: "This change is not waiting any more: it was saved, dropped, or forgotten after newer ones. Look at the " +
		"project, and begin again if it is missing there."}

func (c *Console) showDraft(w http.ResponseWriter, r *http.Request, s *session) {
	d := s.draft(r.PathValue("id"))
	if d == nil {
		c.failed(w, r, s, goneDraft)
		return
	}
	c.render(w, r, s, http.StatusOK, "draft", d.Title, d)
}

var proposalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// saveDraft saves a change, proposes it, or drops it.
func (c *Console) saveDraft(w http.ResponseWriter, r *http.Request, s *session) {
	d := s.draft(r.PathValue("id"))
	if d == nil {
		c.failed(w, r, s, goneDraft)
		return
	}
	switch r.PostFormValue("do") {
	case "drop":
		s.drop(d)
		s.say("The change was dropped.")
		http.Redirect(w, r, d.Back, http.StatusSeeOther)
		return
	case "save", "propose":
	default:
		c.failed(w, r, s, &failure{Status: http.StatusBadRequest, Message: "The form does not say what to do."})
		return
	}
	save := d.edit
	save.Message = strings.TrimSpace(r.PostFormValue("message"))
	if d.Proposal == "" && r.PostFormValue("do") == "propose" {
		save.Proposal = strings.TrimSpace(r.PostFormValue("proposal"))
		if bad := d.proposable(save.Proposal); bad != "" {
			c.showRefused(w, r, s, d, &failure{Status: http.StatusBadRequest, Message: bad})
			return
		}
	}
	if !s.beginSave(d) {
		c.failed(w, r, s, goneDraft)
		return
	}
	made, err := c.api(s).Make(r.Context(), &save)
	if err != nil {
		s.endSave(d)
		c.notSaved(w, r, s, d, save.Proposal, failureOf(err))
		return
	}
	s.drop(d)
	c.saved(s, d, &made, save.Proposal)
	to := d.Back
	switch {
	case made.Project != 0 && d.kind == "project" && save.Proposal == d.Proposal:
		to = projectPage(made.Project)
	case d.kind == "project" && d.Deletes():
		to = Prefix + "projects"
	case save.Proposal != d.Proposal:
		to = Prefix + "changes"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// proposable returns why a draft cannot be proposed under a name, "" if it can.
func (d *draft) proposable(name string) string {
	switch {
	case d.Live():
		return "Keys are always live: a change of them cannot be proposed."
	case !proposalName.MatchString(name):
		return "A proposal needs a name of lower-case letters, digits, dots and hyphens, such as rename-shop."
	}
	return ""
}

// notSaved shows why a draft was not saved: the form with both versions if somebody has changed the same meanwhile, else
// the diff again.
func (c *Console) notSaved(w http.ResponseWriter, r *http.Request, s *session, d *draft, proposal string,
	fail *failure) {
	changed := fail.Status == http.StatusPreconditionFailed
	switch {
	case changed && proposal != d.Proposal:
		fail = &failure{Status: fail.Status, Message: "The proposal " + proposal +
			" has changed this already. Open it on the page Changes, work in it, and edit what it has."}
	case changed && d.edit.IfNew:
		fail = existsAlready
	case (changed || fail.Code == catalog.CodeFileChanged) && d.sent != nil && !d.Deletes():
		if f, err := c.formOf(r, s, d.kind, text(d.edit.Project), text(d.id)); err == nil {
			f.fill(d.sent)
			s.drop(d)
			c.conflict(w, r, s, f)
			return
		}
	}
	c.showRefused(w, r, s, d, fail)
}

// saved tells the person what has become of the change.
func (c *Console) saved(s *session, d *draft, made *client.Made, proposal string) {
	switch commit := made.Commit; {
	case proposal != "":
		s.say("Proposed on the branch " + made.Branch + ". Nothing is live before somebody applies it.")
	case commit != "":
		s.say("Saved as commit " + commit[:min(len(commit), 10)] + ", and live.")
	case c.o.Git:
		s.say("Saved, and live. The commit follows within a second.")
	default:
		s.say("Saved into the file, and live.")
	}
	if made.Key != "" {
		s.mu.Lock()
		s.secretNotice = made.Key
		s.mu.Unlock()
	}
}

// showRefused shows the diff again with the reason why it was not saved.
func (c *Console) showRefused(w http.ResponseWriter, r *http.Request, s *session, d *draft, f *failure) {
	s.mu.Lock()
	again := *d
	s.mu.Unlock()
	again.Error = f
	c.render(w, r, s, f.Status, "draft", d.Title, &again)
}
