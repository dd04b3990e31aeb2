package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// login reads one login block.
func (d *decoder) login(block *hclsyntax.Block) {
	name, rng := d.label(block, loginSchema)
	l := catalog.NewLogin(name)
	var scopes list
	c := d.attributes(block, loginSchema, []catalog.Field{
		{Name: "issuer", Value: &l.Issuer}, {Name: "clientId", Value: &l.ClientID},
		{Name: "clientSecret", Value: &l.ClientSecret}, {Name: "scopes", Value: &scopes}, {Name: "label", Value: &l.Label},
		{Name: "caFile", Value: &l.CAFile},
	})
	if c.says("scopes") {
		l.Scopes = scopes.values
		d.loginScopes(scopes)
	}
	if c.says("ca_file") {
		if msg := checkPath(l.CAFile); msg != "" {
			d.errorf(block.Body.Attributes["ca_file"].Expr.Range(), "ca_file: "+msg,
				"it is the path of a PEM file below the config folder, or below the folder of secrets")
		}
	}
	if c.says("label") && l.Label == "" {
		d.errorf(block.Body.Attributes["label"].Expr.Range(), "label: must not be empty",
			"leave the line out for the name of the block")
	}
	for _, b := range block.Body.Blocks {
		switch {
		case b.Body == nil || len(d.diags) > maxCollected:
		case b.Type == "rule":
			l.Rules = append(l.Rules, d.loginRule(b))
		default:
			d.unknownBlock(b, loginSchema)
		}
	}
	d.validated(c, d.loginProblems(l), "name")
	if name != "" {
		d.once(claim{"login", name}, rng, "login "+Quoted(name)+" is declared twice", "")
	}
	d.place(catalog.KindLogin, name, 0, block)
	d.res.Declared.Logins = append(d.res.Declared.Logins, *l)
	if len(d.res.Declared.Logins) == catalog.MaxLogins+1 {
		d.errorf(header(block), fmt.Sprintf("there are more than %d logins", catalog.MaxLogins),
			"one login may have many rules")
	}
}

// loginProblems is Validate without the problems that were reported for single rules and scopes.
func (d *decoder) loginProblems(l *catalog.Login) catalog.Problems {
	one := func(p catalog.Problem) bool {
		return p.Path == "rules" && strings.HasPrefix(p.Message, "rule ") ||
			p.Path == "scopes" && strings.HasPrefix(p.Message, `"`)
	}
	return slices.DeleteFunc(l.Validate(d.o.Allow.Logins), one)
}

func (d *decoder) loginScopes(scopes list) {
	for i, s := range scopes.values {
		if msg := catalog.CheckScope(s); msg != "" {
			hint := ""
			if strings.ContainsAny(s, " ,") {
				hint = "write each scope as an element of its own"
			}
			d.errorf(scopes.ranges[i], "scopes: this "+msg, "%s", hint)
		} else if slices.Contains(scopes.values[:i], s) {
			d.errorf(scopes.ranges[i], "scopes: "+Quoted(s)+" is in the list twice", "")
		}
	}
}

// loginRule reads one rule block of a login.
func (d *decoder) loginRule(block *hclsyntax.Block) catalog.LoginRule {
	d.label(block, ruleSchema)
	var r catalog.LoginRule
	var allow, projects list
	c := d.attributes(block, ruleSchema, []catalog.Field{
		{Name: "claim", Value: &r.Claim}, {Name: "value", Value: &r.Value}, {Name: "allow", Value: &allow},
		{Name: "projects", Value: &projects},
	})
	d.loginPermissions(c, &r, allow)
	if c.says("projects") {
		r.Projects = projects.values
		d.checkSlugs(projects)
	}
	reported := func(p catalog.Problem) bool { return p.Path == "projects" && len(r.Projects) > 0 } // element by element
	d.validated(c, slices.DeleteFunc(r.Validate(), reported), "")
	return r
}

func (d *decoder) loginPermissions(c *content, r *catalog.LoginRule, allow list) {
	words := catalog.LoginPermissions()
	for i, w := range allow.values {
		p, _ := catalog.ParsePermissions([]string{w})
		if slices.Contains(words, w) {
			r.Allow |= p
			continue
		}
		hint := didYouMean(w, words)
		if p == catalog.MayCreate {
			hint = `"create" needs an owner, which a key has; "write" without a list of projects creates projects`
		}
		d.errorf(allow.ranges[i], "allow: must be one of "+strings.Join(words, ", "), "%s", hint)
		_, at := c.schema.attribute("allow")
		c.bad = c.bad.With(at)
	}
}
