package hclfile

import (
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// key reads one key block.
func (d *decoder) key(block *hclsyntax.Block) {
	name, rng := d.label(block, keySchema)
	k := catalog.Key{Name: name}
	var hash, expires string
	var allow, projects list
	c := d.attributes(block, keySchema, []catalog.Field{
		{Name: "id", Value: &k.ID}, {Name: "hash", Value: &hash}, {Name: "allow", Value: &allow},
		{Name: "owner", Value: &k.Owner}, {Name: "projects", Value: &projects}, {Name: "expiresAt", Value: &expires},
	})
	d.keyHash(c, &k, hash)
	d.keyAllow(c, &k, allow)
	d.keyProjects(c, &k, projects)
	d.keyExpiry(c, &k, expires)
	d.validated(c, keyProblems(&k, c), "name")
	if name != "" {
		d.once(claim{"key", name}, rng, "key "+Quoted(name)+" is declared twice", "")
	}
	if c.says("id") {
		d.once(claim{"key id", k.ID}, block.Body.Attributes["id"].Expr.Range(), "two keys have the same id",
			"the id is part of the key's text, so one of the two can never match")
	}
	d.place(catalog.KindKey, name, 0, block)
	d.res.Declared.Keys = append(d.res.Declared.Keys, k)
}

// keyProblems is Validate without the problems that were reported for single words.
func keyProblems(k *catalog.Key, c *content) (ps catalog.Problems) {
	for _, p := range k.Validate() {
		if p.Path == "projects" && (len(k.Projects) > 0 || c.says("owner")) {
			continue
		}
		ps = append(ps, p)
	}
	if c.says("owner") && k.Owner == "" {
		ps.Addf("owner", "%s", catalog.CheckOwner(""))
	}
	return ps
}

func (d *decoder) keyHash(c *content, k *catalog.Key, text string) {
	_, i := c.schema.attribute("hash")
	if !c.wrote(i) {
		d.atHeader(c, Error, `attribute "hash" is missing`, `"fingerpost keys create" makes a key and prints its hash`)
		return
	}
	if !c.said.Has(i) {
		return
	}
	var err error
	if k.Hash, err = catalog.ParseKeyHash(text); err != nil {
		d.errorf(c.block.Body.Attributes["hash"].Expr.Range(), "hash: "+err.Error(), "")
	}
}

func (d *decoder) keyAllow(c *content, k *catalog.Key, words list) {
	for i, w := range words.values {
		p, unknown := catalog.ParsePermissions([]string{w})
		k.Allow |= p
		if len(unknown) > 0 {
			d.errorf(words.ranges[i], "allow: must be one of "+strings.Join(catalog.Permissions, ", "), "%s", didYouMean(w,
				catalog.Permissions))
			_, at := c.schema.attribute("allow")
			c.bad = c.bad.With(at)
		}
	}
}

func (d *decoder) keyProjects(c *content, k *catalog.Key, slugs list) {
	switch {
	case c.says("projects"):
		k.Projects = slugs.values
	case c.says("owner"):
		k.Projects = []string{}
	}
	d.checkSlugs(slugs)
}

// keyExpiry reads a UTC time: ISO 8601 to the second or finer, with or without Z.
func (d *decoder) keyExpiry(c *content, k *catalog.Key, text string) {
	if !c.says("expires_at") {
		return
	}
	t, err := catalog.ParseMoment(text)
	if err != nil || t.IsZero() {
		d.errorf(c.block.Body.Attributes["expires_at"].Expr.Range(), "expires_at: must be a time in UTC",
			`write it as "2027-06-30T00:00:00"`)
		return
	}
	k.ExpiresAt = t
}

// DiagnoseSlug makes a warning about a slug in the list of a catalog.ListHolder. It points at the list's element, if
// there is one.
func (r *Result) DiagnoseSlug(u catalog.UnknownSlug, summary, detail string) Diagnostic {
	if r.Source.Body != nil {
		for l := range ProjectLists(r.Source.Body) {
			if l.Block.Type != string(u.Kind) || len(l.Block.Labels) != 1 || l.Block.Labels[0] != u.Name {
				continue
			}
			for _, e := range l.List.Exprs {
				if r.Source.Canonical(e) == "string "+u.Slug {
					return r.Source.diagnostic(Warning, e.Range(), summary, detail)
				}
			}
		}
	}
	return r.Diagnose(catalog.Ref{Kind: u.Kind, Name: u.Name}, Warning, summary, detail)
}
