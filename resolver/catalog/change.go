package catalog

import (
	"slices"
	"time"
)

// Declared is what one file declares, after decoding: values valid in themselves, not yet checked against other files.
type Declared struct {
	Projects  []ProjectConfig
	Templates []Template // default templates
	Keys      []Key
	Defaults  *Defaults
	Sealing   *Sealing
}

// Clone copies d with all that can be changed through it.
func (d *Declared) Clone() *Declared {
	c := &Declared{
		Projects: slices.Clone(d.Projects), Templates: slices.Clone(d.Templates), Keys: slices.Clone(d.Keys),
		Defaults: clone(d.Defaults), Sealing: clone(d.Sealing),
	}
	for i := range c.Projects {
		p := &c.Projects[i]
		p.Project.Description = clone(p.Project.Description)
		p.Domains, p.Templates = slices.Clone(p.Domains), slices.Clone(p.Templates)
		p.Service.SMSProvider = clone(p.Service.SMSProvider)
		p.SMTP = clone(p.SMTP)
	}
	for i := range c.Keys {
		c.Keys[i].Projects = slices.Clone(c.Keys[i].Projects)
	}
	if s := c.Sealing; s != nil {
		s.Recipients = slices.Clone(s.Recipients)
	}
	if f := c.Defaults; f != nil {
		f.Auth = clone(f.Auth)
		if f.Service = clone(f.Service); f.Service != nil {
			f.Service.SMSProvider = clone(f.Service.SMSProvider)
		}
	}
	return c
}

// clone copies what p points to.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Sealing is the sealing block.
type Sealing struct {
	Recipients []string // age X25519 recipients, "age1…"
	Require    bool     // clear-text secrets are errors
}

// A Ref names an object that a file declares, well enough to find and to remove it.
type Ref struct {
	Kind      Kind
	Name      string // slug, canonical domain, template code or key name; empty for defaults and sealing
	UUID      UUID   // zero for keys, defaults, sealing
	ID        int64
	ProjectID int64  // of a domain or template; 0 for a default template
	KeyID     string // a key's public id
}

// Refs lists the objects of d that have a life of their own.
func (d *Declared) Refs() []Ref {
	n := 0
	d.EachRef(func(Ref) { n++ })
	if n == 0 {
		return nil
	}
	refs := make([]Ref, 0, n)
	d.EachRef(func(r Ref) { refs = append(refs, r) })
	return refs
}

// EachRef yields what Refs lists.
func (d *Declared) EachRef(yield func(Ref)) {
	for i := range d.Projects {
		p := &d.Projects[i]
		yield(Ref{Kind: KindProject, Name: p.Project.Slug, UUID: p.Project.UUID, ID: p.Project.ID})
		for j := range p.Domains {
			dom := &p.Domains[j]
			yield(Ref{Kind: KindDomain, Name: dom.Name, UUID: dom.UUID, ID: dom.ID, ProjectID: p.Project.ID})
		}
		eachTemplateRef(p.Templates, p.Project.ID, yield)
	}
	eachTemplateRef(d.Templates, 0, yield)
	for i := range d.Keys {
		yield(Ref{Kind: KindKey, Name: d.Keys[i].Name, KeyID: d.Keys[i].ID})
	}
	if d.Defaults != nil {
		yield(Ref{Kind: KindDefaults})
	}
	if d.Sealing != nil {
		yield(Ref{Kind: KindSealing})
	}
}

func eachTemplateRef(list []Template, project int64, yield func(Ref)) {
	for i := range list {
		t := &list[i]
		yield(Ref{Kind: KindTemplate, Name: t.Code, UUID: t.UUID, ID: t.ID, ProjectID: project})
	}
}

// A Stamp tells whether a file is still the one that was read: all but the hash is cheap to compare, the hash decides.
type Stamp struct {
	Size    int64
	ModTime time.Time
	Changed time.Time // when the inode was changed last (ctime), which nobody can set back; zero where that is not known
	Inode   uint64
	Hash    [32]byte // SHA-256 of the content
}

// SameStat reports whether size, times and inode are equal.
func (s Stamp) SameStat(o Stamp) bool {
	return s.Size == o.Size && s.Inode == o.Inode && s.ModTime.Equal(o.ModTime) && s.Changed.Equal(o.Changed)
}

// A FileRow is the file table's entry for one accepted file.
type FileRow struct {
	Stamp Stamp
	Deps  []Dep // the files that its file() calls name
	Refs  []Ref // what it declares, where the row comes from a Sink; what a Change says of them is not looked at
	// Warned: decoding it gave warnings, so it is parsed again at the next start for them to be shown. The Stamp of such a row
	// that comes from a Sink has no Hash.
	Warned bool
}

// A Dep is a file that a config file takes text from.
type Dep struct {
	Path  string // slash-separated, below the config folder
	Stamp Stamp
}

// A FileChange says what becomes of one file.
type FileChange struct {
	Path string // slash-separated, below the config folder
	Row  *FileRow
	// Declared replaces all that the file declared before. Nil with a Row: only the row is new, the objects stay (the
	// file was touched). Nil without a Row: the file is gone, and so is what it declared, unless another file of the
	// same Change declares it.
	Declared *Declared
	Bytes    []byte // the accepted content, kept as the file's last good state; goes with Declared
}

// A Change is what one look at the files found: one batch.
type Change struct{ Files []FileChange }
