package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A domainView is a domain of a project, with what is known of its verification.
type domainView struct {
	Project catalog.Project
	Domain  catalog.Domain
	verificationView
	Failed *failure // why nothing is known
	Check  bool     // the key may have it checked
	// Link is the path of a new link for the customer; "": the key may not make one, or it cannot be made now.
	Link, Origin string
	EndLinks     bool // the key may end all links
}

// A verificationView is what people see of a domain's verification.
type verificationView struct {
	View   *catalog.VerificationView
	Absent bool // name servers know no record of the domain
	States []stateView
	Groups []recordGroup
}

// A stateView is the answer to one of the three questions, in words, with a colour and a symbol.
type stateView struct {
	Title, State       string
	Kind, Symbol, Text string
	Since              time.Time // zero: not known
	Detail             string
}

// A recordGroup are the records to set for one purpose.
type recordGroup struct {
	ID, Title, Help string
	Records         []catalog.RecordView // those to set
	Others          *recordGroup         // of which one is enough instead; nil: there are none
}

func (g *recordGroup) add(r *catalog.RecordView) {
	if !r.Alternative || len(g.Records) == 0 {
		g.Records = append(g.Records, *r)
		return
	}
	if g.Others == nil {
		g.Others = &recordGroup{ID: g.ID + "-other", Title: g.Title + ", otherwise"}
	}
	g.Others.Records = append(g.Others.Records, *r)
}

// absent reports whether name servers have said that a domain has no address, and know none of its records.
func absent(v *catalog.VerificationView) bool {
	return v.Pointing.State == dcv.Nowhere && !slices.ContainsFunc(v.Records, func(r catalog.RecordView) bool {
		return slices.ContainsFunc(r.Found, func(f catalog.FoundView) bool { return len(f.Values) > 0 })
	})
}

// domainPage is the path that leads to a domain's page.
func domainPage(project, domain int64) string {
	return projectPage(project) + "/domains/" + strconv.FormatInt(domain, 10)
}

// domainOf finds the domain that a path names.
func (c *Console) domainOf(r *http.Request, s *session) (v domainView, err error) {
	ctx, api := r.Context(), c.client(s, "") // checks are about what is live
	id, _, err := projectID(ctx, api, r.PathValue("id"))
	if err != nil {
		return v, err
	}
	x, err := explained(ctx, api, id)
	if err != nil {
		return v, err
	}
	v.Project = x.Config.Project
	i := slices.IndexFunc(x.Config.Domains, func(d catalog.Domain) bool { return d.ID == idOf(r.PathValue("domain")) })
	if i < 0 {
		return v, noPage
	}
	v.Domain, v.Check = x.Config.Domains[i], s.Key().at(v.Project.ID)&catalog.MayWrite != 0
	return v, nil
}

// showDomain answers the page of a domain.
func (c *Console) showDomain(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.domainOf(r, s)
	if err != nil {
		return err
	}
	known, err := c.client(s, "").Verification(r.Context(), v.Project.ID, v.Domain.ID)
	if err != nil {
		v.Failed = failureOf(err)
	} else {
		v.verificationView = verificationOf(&known)
		c.offerLink(r, s, &v)
	}
	return c.render(w, r, s, http.StatusOK, "domain", v.Domain.Name, v)
}

// checkDomain has a domain checked, and leads back to its page.
func (c *Console) checkDomain(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.domainOf(r, s)
	if err != nil {
		return err
	}
	checked, err := c.client(s, "").CheckVerification(r.Context(), v.Project.ID, v.Domain.ID)
	if err != nil {
		return err
	}
	said := "Checked: " + v.Domain.Name + " is not ready yet."
	if checked.Ready {
		said = "Checked: " + v.Domain.Name + " is ready."
	}
	s.say(said)
	return seeOther(w, r, domainPage(v.Project.ID, v.Domain.ID))
}

// verificationOf puts into words what is known.
func verificationOf(v *catalog.VerificationView) (view verificationView) {
	o, p, c := &v.Ownership, &v.Pointing, &v.Certificate
	view.View = v
	add := func(title, state string, since *catalog.JSONMoment, detail string) {
		word := stateWords[title+" "+state]
		x := stateView{Title: title, State: state, Kind: word.kind, Symbol: symbols[word.kind], Text: word.text,
			Detail: detail}
		if since != nil {
			x.Since = since.Time
		}
		view.States = append(view.States, x)
	}
	spreading, addresses, issued := "", "", ""
	if o.Spreading {
		spreading = "Name servers disagree at the moment."
	}
	for i, a := range p.Addresses {
		if i > 0 {
			addresses += ", "
		}
		addresses += a
	}
	if c.Issuer != nil {
		issued = "From " + *c.Issuer
	}
	if c.ExpiresAt != nil {
		issued += " until " + c.ExpiresAt.UTC().Format("2006-01-02")
	}
	add("Ownership", o.State, o.Since, spreading)
	add("Pointing", p.State, p.Since, addresses)
	add("Certificate", c.State, c.Since, issued)
	view.Absent = absent(v)
	ownership := recordGroup{ID: "ownership", Title: "Prove that the domain is yours"}
	if o.State == dcv.Trusted {
		ownership.Help = "No proof is needed. This record would give it."
	}
	pointing := recordGroup{ID: "pointing", Title: "Let the domain lead here"}
	for i := range v.Records {
		if r := &v.Records[i]; r.Purpose == "ownership" {
			ownership.add(r)
		} else {
			pointing.add(r)
		}
	}
	view.Groups = []recordGroup{ownership, pointing}
	return view
}

// symbols say what the colours of states say.
var symbols = map[string]string{"good": "✓", "warn": "!", "bad": "✕", "": "?"}

// stateWords are the states in words, by question and state.
var stateWords = map[string]struct{ kind, text string }{
	"Ownership trusted":    {"good", "No proof is needed."},
	"Ownership pending":    {"warn", "Not proven yet. Until then the domain is not answered."},
	"Ownership proven":     {"good", "The proof is in place."},
	"Ownership failing":    {"bad", "The proof is gone. The domain is answered for now."},
	"Ownership lost":       {"bad", "The proof has been gone for too long."},
	"Pointing here":        {"good", "The domain leads here."},
	"Pointing elsewhere":   {"bad", "The domain leads to another place."},
	"Pointing nowhere":     {"bad", "The domain has no address."},
	"Pointing spreading":   {"warn", "Name servers disagree: a change is on its way."},
	"Pointing unknown":     {"", "Not known yet."},
	"Certificate good":     {"good", "Browsers accept the certificate."},
	"Certificate expiring": {"warn", "The certificate ends within 14 days."},
	"Certificate wrong":    {"bad", "Browsers refuse the certificate."},
	"Certificate none":     {"bad", "There is no certificate."},
	"Certificate unknown":  {"", "Not known yet: it is looked at once the domain leads here."},
}
