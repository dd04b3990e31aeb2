package transfer

import (
	"cmp"
	"slices"

	"fingerpost/resolver/catalog"
)

// A Tree is the declarations of all files, with the settings of projects as they would be in force.
type Tree struct {
	Projects  []*catalog.ProjectConfig // by slug
	Templates []catalog.Template       // default ones
	Keys      []catalog.Key
	Edges     []catalog.Edge
	Webhooks  []catalog.Webhook
	Logins    []catalog.Login
	Inbounds  []catalog.Inbound
	Defaults  *catalog.Defaults
	Sealing   *catalog.Sealing
}

// NewTree makes a Tree from the declarations of files without errors. It takes ownership of them and completes them.
func NewTree(files []*catalog.Declared) *Tree {
	d := new(Tree)
	for _, f := range files {
		d.Templates = append(d.Templates, f.Templates...)
		d.Keys = append(d.Keys, f.Keys...)
		d.Edges = append(d.Edges, f.Edges...)
		d.Webhooks = append(d.Webhooks, f.Webhooks...)
		d.Logins = append(d.Logins, f.Logins...)
		d.Inbounds = append(d.Inbounds, f.Inbounds...)
		if f.Defaults != nil {
			d.Defaults = f.Defaults
		}
		if f.Sealing != nil {
			d.Sealing = f.Sealing
		}
		for k := range f.Projects {
			d.Projects = append(d.Projects, &f.Projects[k])
		}
	}
	for i := range d.Templates {
		plainMaxAge(&d.Templates[i])
	}
	for _, p := range d.Projects {
		for i := range p.Templates {
			plainMaxAge(&p.Templates[i])
		}
		if d.Defaults != nil {
			p.Service, p.Auth = p.Service.Over(d.Defaults.Service), p.Auth.Over(d.Defaults.Auth)
		}
		if p.SMTP != nil {
			p.SMTP.Port = p.SMTP.EffectivePort()
		}
	}
	slices.SortFunc(d.Projects, func(a, b *catalog.ProjectConfig) int {
		return cmp.Compare(a.Project.Slug,
			b.Project.Slug)
	})
	return d
}

// rest returns what belongs to no project.
func (t *Tree) rest() *catalog.Declared {
	return &catalog.Declared{Templates: t.Templates, Keys: t.Keys, Edges: t.Edges, Webhooks: t.Webhooks,
		Logins: t.Logins, Inbounds: t.Inbounds, Defaults: t.Defaults, Sealing: t.Sealing}
}

// plainMaxAge clears a MaxAge that equals the default.
func plainMaxAge(t *catalog.Template) {
	if t.MaxAge == catalog.DefaultMaxAge {
		t.MaxAge = ""
	}
}

// A pair is a project that is on the server, in the files, or both.
type pair struct {
	have *catalog.Project
	want *catalog.ProjectConfig
}

func (p pair) slug() string {
	if p.want != nil {
		return p.want.Project.Slug
	}
	return p.have.Slug
}

// pairUp pairs each project of the server with one of the files: by uuid, and the remaining ones by slug. The pairs are
// sorted by slug.
func pairUp(haves []catalog.Project, wants []*catalog.ProjectConfig) []pair {
	byUUID, bySlug := map[catalog.UUID]*catalog.ProjectConfig{}, map[string]*catalog.ProjectConfig{}
	for _, w := range wants {
		byUUID[w.Project.UUID] = w
		bySlug[w.Project.Slug] = w
	}
	taken := map[*catalog.ProjectConfig]bool{}
	var pairs []pair
	var left []*catalog.Project
	for i := range haves {
		h := &haves[i]
		if w := byUUID[h.UUID]; w != nil && !taken[w] {
			taken[w] = true
			pairs = append(pairs, pair{h, w})
		} else {
			left = append(left, h)
		}
	}
	for _, h := range left {
		w := bySlug[h.Slug]
		if taken[w] {
			w = nil
		}
		if w != nil {
			taken[w] = true
		}
		pairs = append(pairs, pair{h, w})
	}
	for _, w := range wants {
		if !taken[w] {
			pairs = append(pairs, pair{nil, w})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.slug(), b.slug()) })
	return pairs
}
