package console

import (
	"context"
	"maps"
	"net/http"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/chart"
	"fingerpost/api/console/now"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// A nowView is what needs a person, and how it is.
type nowView struct {
	Items  []now.Item
	Whole  bool              // the key covers every project
	Files  *configsrc.Status // nil: not for this key
	Kept   bool              // mail is kept instead of being sent
	Charts []*chart.HourChart
}

// now answers the start page. Links to a look-up of the time when that was the start page still lead there.
func (c *Console) now(w http.ResponseWriter, r *http.Request, s *session) error {
	if domain := r.FormValue("domain"); domain != "" {
		return seeOther(w, r, link(Prefix+"lookup", "domain", domain))
	}
	return c.render(w, r, s, http.StatusOK, "now", "Now", c.nowOf(r.Context(), s, sinces{}))
}

// nowOf collects the page. known is what the page has found out when it was made before.
func (c *Console) nowOf(ctx context.Context, s *session, known sinces) *nowView {
	facts := c.facts(ctx, s, known)
	return &nowView{Items: now.Items(facts), Whole: facts.May.Everything, Files: facts.Files, Kept: c.o.MailKept,
		Charts: c.nowCharts(s)}
}

// facts collects what the session's key may know of the present state.
func (c *Console) facts(ctx context.Context, s *session, known sinces) *now.Facts {
	k, may, api := s.Key(), c.may(s), c.client(s, "")
	f := &now.Facts{Time: time.Now(), May: now.May{Write: may.Save, Edit: may.Edit, Everything: k.Everything, Key: k.Name}}
	if p := c.problemsOf(s); p.Whole {
		f.Files, f.Store, f.Git = &p.Status, p.Store, (*now.Git)(p.Git)
	}
	c.stoppedMail(ctx, s, f)
	if c.o.CutOff != nil {
		f.CutOff = c.o.CutOff()
	}
	if c.o.Cluster && k.Everything {
		f.Edges, _ = api.Edges(ctx) // an edge that cannot be asked tells nothing
	}
	if may.Keys {
		f.Keys, _ = api.Keys(ctx)
	} else if !k.ExpiresAt.IsZero() {
		f.Keys = []client.Key{{Name: k.Name, ExpiresAt: catalog.Moment(k.ExpiresAt)}}
	}
	c.unprovenDomains(ctx, api, f, known)
	if c.o.Git && may.Edit {
		f.Proposals, _ = api.Proposals(ctx)
	}
	return f
}

const (
	maxUnproven = 100 // domains of each state that are listed
	maxSince    = 20  // of these, domains of which it is asked since when
)

// A standing is a domain in a state of ownership.
type standing struct {
	domain int64
	state  string
}

// sinces says since when domains are in their states; the zero time where that is not known. A live page keeps it: each
// domain costs a call of the API, with its line in the log.
type sinces map[standing]time.Time

// of returns since when a domain is in its state.
func (known sinces) of(ctx context.Context, api *client.Client, d *now.Domain) time.Time {
	at := standing{d.ID, d.State}
	since, is := known[at]
	if is {
		return since
	}
	v, err := api.Verification(ctx, d.Project, d.ID)
	if err != nil {
		return since
	}
	if v.Ownership.Since != nil {
		since = v.Ownership.Since.Time
	}
	known[at] = since
	return since
}

// unprovenDomains adds domains whose proof is gone or has not come yet, the worst first. A server that does not know tells
// nothing. To list them costs a look at every domain, so states that no domain is in are not asked for.
func (c *Console) unprovenDomains(ctx context.Context, api *client.Client, f *now.Facts, known sinces) {
	f.MoreDomains = map[string]int{}
	asked := map[standing]bool{}
	for _, state := range []string{"lost", "failing", "pending"} {
		if c.o.Unproven != nil && !c.o.Unproven(state) {
			continue
		}
		page, err := api.DomainPage(ctx, query("ownership", state, "limit", itoa(maxUnproven)))
		if err != nil {
			return
		}
		f.MoreDomains[state] = max(page.Total-len(page.Rows), 0)
		for i := range page.Rows {
			d := now.Domain{Project: page.Rows[i].ProjectID, ID: page.Rows[i].ID, Name: page.Rows[i].Name, State: state}
			if i < maxSince && !c.o.Edge { // an edge would ask its authority about each
				d.Since = known.of(ctx, api, &d)
				asked[standing{d.ID, d.State}] = true
			}
			f.Domains = append(f.Domains, d)
		}
	}
	maps.DeleteFunc(known, func(at standing, _ time.Time) bool { return !asked[at] }) // it may come into the state again
}

const (
	maxStopped = 50  // projects whose mail has stopped that are listed
	maxTried   = 200 // of which a key for some projects is asked whether it covers them
)

// stoppedMail adds the projects of the key whose mail has stopped.
func (c *Console) stoppedMail(ctx context.Context, s *session, f *now.Facts) {
	if c.o.Mail == nil || c.o.Edge { // the authority sends
		return
	}
	if f.May.Everything {
		f.MailRoom = c.o.Mail.Counts().LowDisk
	}
	api := c.client(s, "")
	for i, x := range c.o.Mail.Stopped() {
		if i >= maxTried && !f.May.Everything {
			return
		}
		if f.May.Everything && len(f.Stopped) >= maxStopped {
			f.More++
			continue
		}
		p, err := api.ProjectByID(ctx, x.ProjectID)
		if err != nil {
			continue // not a project of this key
		}
		if len(f.Stopped) >= maxStopped {
			f.More++
			continue
		}
		f.Stopped = append(f.Stopped, now.Stopped{Project: x.ProjectID, Name: p.Name, Code: string(x.Code),
			Waiting: x.Waiting, Since: x.Since})
	}
}
