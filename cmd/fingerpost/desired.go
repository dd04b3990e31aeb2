package main

import (
	"cmp"
	"slices"

	"fingerpost/configsrc"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// desired is what the files declare, with the settings of projects as they would be in force.
type desired struct {
	projects  []*catalog.ProjectConfig // by slug
	templates []catalog.Template       // default ones
	keys      []catalog.Key
	defaults  *catalog.Defaults
	sealing   *catalog.Sealing
	origin    map[*catalog.ProjectConfig]*configsrc.CheckedFile
}

// errInvalid is how a command ends that needs valid files: the contract's table of exit codes counts them under 1.
var errInvalid = no(`the files have errors, so nothing was compared or sent: put them right, see "fingerpost validate"`)

// loadDesired reads the config folder. Files with errors are errInvalid; the diagnostics then say why.
func loadDesired(t terminal, dir string) (*desired, hclfile.Diagnostics, error) {
	checked, err := t.check(dir, nil)
	if err != nil {
		return nil, nil, err
	}
	if checked.Problems.HasErrors() {
		return nil, checked.Problems, errInvalid
	}
	return newDesired(checked), nil, nil
}

func newDesired(checked *configsrc.Checked) *desired {
	d := &desired{origin: map[*catalog.ProjectConfig]*configsrc.CheckedFile{}}
	for i := range checked.Files {
		f := &checked.Files[i]
		d.templates = append(d.templates, f.Declared.Templates...)
		d.keys = append(d.keys, f.Declared.Keys...)
		if f.Declared.Defaults != nil {
			d.defaults = f.Declared.Defaults
		}
		if f.Declared.Sealing != nil {
			d.sealing = f.Declared.Sealing
		}
		for k := range f.Declared.Projects {
			p := &f.Declared.Projects[k]
			d.projects = append(d.projects, p)
			d.origin[p] = f
		}
	}
	for i := range d.templates {
		plainMaxAge(&d.templates[i])
	}
	for _, p := range d.projects {
		for i := range p.Templates {
			plainMaxAge(&p.Templates[i])
		}
		if d.defaults != nil {
			p.Service, p.Auth = p.Service.Over(d.defaults.Service), p.Auth.Over(d.defaults.Auth)
		}
		if p.SMTP != nil {
			p.SMTP.Port = p.SMTP.EffectivePort()
		}
	}
	slices.SortFunc(d.projects, func(a, b *catalog.ProjectConfig) int { return cmp.Compare(a.Project.Slug, b.Project.Slug) })
	return d
}

// plainMaxAge leaves out what holds anyway.
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

// pairUp finds the project of the files for each of the server: by uuid, and among those left by slug. The pairs come by
// slug.
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
