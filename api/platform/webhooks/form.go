package webhooks

import (
	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// fieldNames are the fields that requests may have besides the name; readOnly are further ones of answers.
var (
	fieldNames = []string{"url", "secret", "events", "projects", "active"}
	readOnly   = []string{"secrets", "delivery"}
)

// readNew reads a new webhook. made is the secret, if the request has none.
func (a *API) readNew(f *web.Form) (w *catalog.Webhook, made string, err error) {
	f.Require("name", "is required")
	var name string
	f.Read("name", &name)
	w = catalog.NewWebhook(name)
	f.Require("url", "is required: the address that events are posted to, with https")
	if !f.Has("secret") {
		made = catalog.NewWebhookSecret()
		w.Secrets = []catalog.Secret{{Source: catalog.SecretPlain, Ref: made}}
	}
	return w, made, a.fill(f, w)
}

// fill sets the fields that the request has, and returns all problems as one error.
func (a *API) fill(f *web.Form, w *catalog.Webhook) error {
	f.Read("url", &w.URL)
	f.Read("active", &w.Active)
	if f.Has("secret") {
		var text string
		f.Read("secret", &text)
		w.Secrets = []catalog.Secret{{Source: catalog.SecretPlain, Ref: text}}
	}
	if value, given := f.Body.Values["events"]; given {
		w.Events = nil
		if value != nil {
			w.Events = a.readEvents(f)
		}
	}
	if value, given := f.Body.Values["projects"]; given {
		var err error
		if list, is := value.([]any); is && len(list) == 0 { // an answer that is sent back, after its last project has gone
			w.Projects = []string{}
		} else if value == nil {
			w.Projects = nil
		} else if w.Projects, err = f.Slugs("projects", a.State.ProjectBySlug); err != nil {
			return err
		}
	}
	var problems catalog.Problems
	for _, p := range w.Validate(a.Allow) {
		if p.Path != "events" && p.Path != "projects" { // each element has its problem
			problems = append(problems, p)
		}
	}
	return f.Validated(problems)
}

func (a *API) readEvents(f *web.Form) []string {
	events := f.Words("events", `events, such as "domain.*", or null for everything but mail.*`)
	for i, e := range events {
		if at := web.Element("events", i); !f.Bad[at] {
			if msg := catalog.CheckWebhookEvent(e); msg != "" {
				f.Fail(at, msg+web.Meant(names.Near(e, catalog.WebhookPatterns())))
			}
		}
	}
	return events
}
