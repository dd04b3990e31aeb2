package hclfile

import (
	"fmt"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// webhook reads one webhook block.
func (d *decoder) webhook(block *hclsyntax.Block) {
	name, rng := d.label(block, webhookSchema)
	w := catalog.NewWebhook(name)
	var events, projects list
	c := d.attributes(block, webhookSchema, []catalog.Field{
		{Name: "url", Value: &w.URL}, {Name: "secret", Value: &w.Secrets}, {Name: "events", Value: &events},
		{Name: "projects", Value: &projects}, {Name: "active", Value: &w.Active},
	})
	if c.says("events") {
		w.Events = events.values
		d.webhookEvents(events)
	}
	if c.says("projects") {
		w.Projects = projects.values
		d.checkSlugs(projects)
	}
	d.validated(c, d.webhookProblems(w), "name")
	if name != "" {
		d.once(claim{"webhook", name}, rng, "webhook "+Quoted(name)+" is declared twice", "")
	}
	d.place(catalog.KindWebhook, name, 0, block)
	d.res.Declared.Webhooks = append(d.res.Declared.Webhooks, *w)
	if len(d.res.Declared.Webhooks) == catalog.MaxWebhooks+1 {
		d.errorf(header(block), fmt.Sprintf("there are more than %d webhooks", catalog.MaxWebhooks),
			"one webhook may have many events and projects")
	}
}

// webhookProblems is Validate without the problems that were reported for single elements of a list.
func (d *decoder) webhookProblems(w *catalog.Webhook) (ps catalog.Problems) {
	for _, p := range w.Validate(d.o.Allow.Webhooks) {
		if p.Path == "events" && len(w.Events) > 0 || p.Path == "projects" && len(w.Projects) > 0 {
			continue
		}
		ps = append(ps, p)
	}
	return ps
}

func (d *decoder) webhookEvents(events list) {
	seen := map[string]bool{}
	for i, e := range events.values {
		if msg := catalog.CheckWebhookEvent(e); msg != "" {
			hint := ""
			if !strings.Contains(e, "*") {
				hint = didYouMean(e, catalog.WebhookPatterns())
			}
			d.errorf(events.ranges[i], "events: this "+msg, "%s", hint)
		} else if seen[e] {
			d.errorf(events.ranges[i], "events: "+Quoted(e)+" is in the list twice", "")
		}
		seen[e] = true
	}
}

// checkSlugs reports the elements of a list of projects that are no slugs.
func (d *decoder) checkSlugs(projects list) {
	for i, slug := range projects.values {
		if msg := catalog.CheckSlug(slug); msg != "" {
			d.errorf(projects.ranges[i], "projects: this is no slug: it "+msg, "")
		}
	}
}

// secretsValue reads one secret, or a list of them.
func (d *decoder) secretsValue(attr *hclsyntax.Attribute, to *[]catalog.Secret) bool {
	exprs := []hclsyntax.Expression{attr.Expr}
	if tuple, is := Unparen(attr.Expr).(*hclsyntax.TupleConsExpr); is {
		exprs = tuple.Exprs
	}
	ok := true
	for _, e := range exprs {
		var s catalog.Secret
		if d.secret(attr.Name, e, &s) {
			*to = append(*to, s)
		} else {
			ok = false
		}
	}
	return ok
}
