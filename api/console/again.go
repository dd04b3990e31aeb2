package console

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// An againView offers to send a mail of the log again: as a new mail to the same address, which names the old one. What a
// mail said is deleted when it reaches its end, so its template is rendered again, with values that a person gives.
type againView struct {
	Why       string // why it cannot be sent again from here; "": it can
	Once      string // makes one mail of a form that is sent twice
	Variables []variable
	Failed    *failure

	mail client.Mail
}

// again says whether a mail can be sent again, and what is needed for it. values are those that a person has given.
func (c *Console) again(ctx context.Context, s *session, v *entryView, values map[string]string) *againView {
	m := &v.Mail
	if v.Project == nil || !c.mayOn(s, v.Project.ID).Mail {
		return nil
	}
	a := &againView{Once: random(), mail: client.Mail{ToEmail: m.ToEmail, AgainOf: m.ID}}
	api, code := c.api(s), say.Text(m.TemplateCode)
	if kept, err := api.KeptMail(ctx, m.ProjectID, m.ID); v.Kept() && err == nil {
		a.mail.Subject, a.mail.BodyHTML, a.mail.BodyText = kept.Subject, kept.BodyHTML, kept.BodyText
	} else {
		a.Why = a.template(ctx, api, v, code, values)
	}
	if a.Why == "" {
		if a.mail.Domain = c.sender(ctx, api, v.Project.ID); a.mail.Domain == "" {
			a.Why = "The project has no domain that is answered now, and a mail is sent in the name of one."
		}
	}
	if status := catalog.MailStatus(m.Status); !status.Ended() {
		a.Why = "It has not reached its end: it is tried again by itself."
	}
	return a
}

// template prepares a mail of the template that the old one had, and returns why that cannot be done.
func (a *againView) template(ctx context.Context, api *client.Client, v *entryView, code string,
	values map[string]string) (why string) {
	if code == "" {
		return "Its text was given by the program that sent it, and was deleted when it reached its end: that program can " +
			"send it again."
	}
	t, err := api.Template(ctx, v.Project.ID, v.Template)
	switch {
	case v.Template == 0 || client.Status(err, http.StatusNotFound), err == nil && !t.Active:
		return "Its text was deleted when it reached its end, and its template " + code + " is gone or switched off."
	case err != nil:
		return reason(err)
	}
	parts, locale := partsOf(&t, say.Text(v.Mail.Locale))
	parts.Variables = map[string]string{}
	p, err := api.Preview(ctx, v.Project.ID, parts)
	if err != nil {
		return reason(err)
	}
	a.mail.TemplateCode, a.mail.Locale, a.mail.Variables = code, locale, map[string]string{}
	for _, name := range asked(p.Missing, p.Variables) {
		if t.Category != "" && name == catalog.UnsubscribeVariable { // the service gives it
			continue
		}
		a.Variables = append(a.Variables, variable{name, values[name]})
		if values[name] != "" {
			a.mail.Variables[name] = values[name]
		}
	}
	return ""
}

// sender returns a domain of a project in whose name mail can be sent, the primary one if possible; "": there is none.
func (c *Console) sender(ctx context.Context, api *client.Client, project int64) (name string) {
	x, err := explained(ctx, api, project)
	if err != nil {
		return ""
	}
	domains := slices.Clone(x.Config.Domains)
	slices.SortStableFunc(domains, func(a, b catalog.Domain) int {
		if a.Primary == b.Primary {
			return 0
		} else if a.Primary {
			return -1
		}
		return 1
	})
	for i := range domains {
		if d := &domains[i]; !strings.HasPrefix(d.Name, "*.") && d.NotVerified(nil) == 0 {
			return d.Name
		}
	}
	return ""
}

// sendAgain sends a mail of the log again, and leads to the new one.
func (c *Console) sendAgain(w http.ResponseWriter, r *http.Request, s *session) error {
	values := map[string]string{}
	for name, value := range r.PostForm {
		if name, is := strings.CutPrefix(name, "var."); is {
			values[name] = value[0]
		}
	}
	v, err := c.entryOf(r, s, values)
	switch {
	case err != nil:
		return err
	case v.Again == nil:
		return s.Key().refuse("Sending a mail again", catalog.MayMail, false)
	case v.Again.Why != "":
		return &failure{Status: http.StatusConflict, Message: v.Again.Why}
	}
	once := r.PostFormValue("once")
	if once == "" || len(once) > maxOnce {
		return &failure{Status: http.StatusBadRequest, Message: "The form is not complete. Open the page again."}
	}
	id, err := c.api(s).Send(r.Context(), &v.Again.mail, "console-"+once)
	if err != nil {
		v.Again.Failed = failureOf(err)
		return c.render(w, r, s, v.Again.Failed.Status, "entry", "Mail to "+visible(v.Mail.ToEmail), v)
	}
	s.say("Sent again: this is the new mail.")
	return seeOther(w, r, Prefix+"mail/"+say.Text(v.Mail.ProjectID)+"/"+say.Text(id))
}

// maxOnce is more than random returns.
const maxOnce = 64
