package console

import (
	"context"
	"maps"
	"net/http"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/conditions"
	"fingerpost/api/console/chart"
	"fingerpost/api/console/now"
	"fingerpost/api/console/say"
	"fingerpost/configsrc"
	"fingerpost/mailer"
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
	v := &nowView{Items: now.Items(facts), Whole: facts.May.Everything, Kept: c.o.MailKept, Charts: c.nowCharts(s)}
	if p := c.problemsOf(s); p.Whole {
		v.Files = &p.Status
	}
	return v
}

// facts collects what the session's key may know of the present state: that of the node, if it covers every project.
func (c *Console) facts(ctx context.Context, s *session, known sinces) *now.Facts {
	k, may, api := s.Key(), c.may(s), c.client(s, "")
	f := &now.Facts{May: now.May{Write: may.Save, Edit: may.Edit, Everything: k.Everything,
		Webhooks: may.Webhooks, Key: k.Name, EditOn: func(project int64) bool { return c.mayOn(s, project).Edit }}}
	node := &conditions.State{Time: time.Now()}
	if c.o.State != nil {
		node = c.o.State()
	}
	if k.Everything {
		f.State = *node
	} else {
		f.Time, f.CutOff = node.Time, node.CutOff
		c.stoppedMail(ctx, s, f)
	}
	if c.o.Edge && c.o.Cluster && k.Everything { // the authority knows them
		edges, _ := api.Edges(ctx) // an edge that cannot be asked tells nothing
		for _, e := range edges {
			f.Edges = append(f.Edges, conditions.Edge(e))
		}
	}
	if !may.Keys {
		f.Keys = []conditions.Key{{Name: k.Name, Ends: k.ExpiresAt}}
	}
	for i := range f.Keys {
		f.Keys[i].Own = f.Keys[i].Name == k.Name
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
func (known sinces) of(ctx context.Context, api *client.Client, d *conditions.Domain) time.Time {
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
	f.Domains, f.MoreDomains = nil, map[string]int{}
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
			d := conditions.Domain{Project: page.Rows[i].ProjectID, ID: page.Rows[i].ID, Name: page.Rows[i].Name, State: state}
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

// stoppedMail adds the projects of a key for some projects whose mail has stopped.
func (c *Console) stoppedMail(ctx context.Context, s *session, f *now.Facts) {
	if c.o.Mail == nil || c.o.Edge { // the authority sends
		return
	}
	api, all := c.client(s, ""), c.o.Mail.Stopped()
	for _, x := range all[:min(maxTried, len(all))] {
		p, err := api.ProjectByID(ctx, x.ProjectID)
		if err != nil {
			continue // not a project of this key
		}
		if len(f.Stopped) >= maxStopped {
			f.MoreStopped++
			continue
		}
		f.Stopped = append(f.Stopped, stoppedOf(&x, p.Slug, p.Name))
	}
}

// stoppedOf is a project whose mail has stopped.
func stoppedOf(x *mailer.Stopped, slug, name string) conditions.Stopped {
	return conditions.Stopped{Project: x.ProjectID, Slug: slug, Name: name, Code: string(x.Code),
		Why: say.ReasonOf(string(x.Code)).Why, Waiting: x.Waiting, Since: x.Since}
}
