package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// A draft is a change that a person has seen the diff of and not saved yet. It lives in the session, so that no
// password travels back into a page, and is used once.
type draft struct {
	ID, Title, Back string
	Proposal        string // that it was made in, or ""
	Diff            string
	Problems        []object
	Error           *failure

	kind, project, id string
	sent              url.Values
	etag              string
	call              call // with a header, which may be empty
	saving            bool
}

// EditLink leads back to the form, "" if there was none.
func (d *draft) EditLink() string {
	if d.sent == nil {
		return ""
	}
	return link(Prefix+"edit", "kind", d.kind, "project", d.project, "id", d.id, "draft", d.ID)
}

// Anew reports whether the save makes values of its own: those of a dry run are not those of the save.
func (d *draft) Anew() bool {
	return d.kind == "key" || strings.Contains(d.Diff, `sealed("`)
}

// new reports whether the change must not replace anything.
func (d *draft) new() bool { return d.call.header.Get("If-None-Match") != "" }

var existsAlready = &failure{Status: http.StatusPreconditionFailed,
	Message: "This exists already, and was not replaced. Edit that one."}

// Live reports whether the change cannot be proposed.
func (d *draft) Live() bool { return editable[d.kind].live }

// Deletes reports whether the change deletes something.
func (d *draft) Deletes() bool { return d.call.method == http.MethodDelete }

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

// bytes is about the memory of a draft's texts; its call shares those of the form.
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

const headerPropose = "X-Propose"

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
	save := d.call
	save.header = d.call.header.Clone()
	if m := strings.TrimSpace(r.PostFormValue("message")); m != "" {
		save.header.Set("X-Change-Message", m)
	}
	proposal := d.Proposal
	if proposal == "" && r.PostFormValue("do") == "propose" {
		name := strings.TrimSpace(r.PostFormValue("proposal"))
		if d.Live() {
			c.showRefused(w, r, s, d, &failure{Status: http.StatusBadRequest,
				Message: "Keys are always live: a change of them cannot be proposed."})
			return
		}
		if !proposalName.MatchString(name) {
			c.showRefused(w, r, s, d, &failure{Status: http.StatusBadRequest,
				Message: "A proposal needs a name of lower-case letters, digits, dots and hyphens, such as rename-shop."})
			return
		}
		save.header.Set(headerPropose, name)
		proposal = name
	}
	if !s.beginSave(d) {
		c.failed(w, r, s, goneDraft)
		return
	}
	a, err := c.ask(r.Context(), s, save)
	if fail, is := errors.AsType[*failure](err); is {
		s.endSave(d)
		if fail.Status == http.StatusPreconditionFailed && proposal != d.Proposal {
			c.showRefused(w, r, s, d, &failure{Status: fail.Status, Message: "The proposal " + proposal +
				" has changed this already. Open it on the page Changes, work in it, and edit what it has."})
			return
		}
		if fail.Status == http.StatusPreconditionFailed && d.new() {
			c.showRefused(w, r, s, d, existsAlready)
			return
		}
		if fail.Status == http.StatusPreconditionFailed || fail.Code == "CONFIG_CHANGED_ON_DISK" {
			f, err := c.formOf(r, s, d.kind, d.project, d.id)
			if err == nil && d.sent != nil && !d.Deletes() {
				f.fill(d.sent)
				s.drop(d)
				c.conflict(w, r, s, f)
				return
			}
		}
		c.showRefused(w, r, s, d, fail)
		return
	}
	if err != nil {
		s.endSave(d)
		c.failed(w, r, s, err)
		return
	}
	s.drop(d)
	c.saved(s, d, a, proposal != "")
	to := d.Back
	if id, made := strings.CutPrefix(a.Header.Get("Location"), projectsPath+"/"); made && d.kind == "project" &&
		d.Proposal != "" {
		to = Prefix + "projects/" + id
	} else if d.kind == "project" && d.Deletes() {
		to = Prefix + "projects"
	} else if d.kind == "project" && d.project == "" && a.Status == http.StatusCreated {
		to = Prefix + "projects/" + text(a.Object()["id"])
	} else if proposal != d.Proposal {
		to = Prefix + "changes"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// saved tells the person what has become of the change.
func (c *Console) saved(s *session, d *draft, a *answer, proposed bool) {
	switch commit := a.Header.Get("X-Commit"); {
	case proposed:
		s.say("Proposed on the branch " + text(a.Object()["branch"]) + ". Nothing is live before somebody applies it.")
	case commit != "":
		s.say("Saved as commit " + commit[:min(len(commit), 10)] + ", and live.")
	case c.o.Git:
		s.say("Saved, and live. The commit follows within a second.")
	default:
		s.say("Saved into the file, and live.")
	}
	if key := text(a.Object()["key"]); d.kind == "key" && key != "" {
		s.mu.Lock()
		s.secretNotice = key
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
