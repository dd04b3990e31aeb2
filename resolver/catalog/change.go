package catalog

import (
	"iter"
	"slices"
	"time"
)

// Declared is the decoded content of one file: values valid in themselves, not yet checked against other files.
type Declared struct {
	Projects  []ProjectConfig
	Templates []Template // default templates
	Keys      []Key
	Edges     []Edge
	Webhooks  []Webhook
	Logins    []Login
	Inbounds  []Inbound
	Defaults  *Defaults
	Sealing   *Sealing
}

// Clone returns a copy of d that shares no mutable memory with it.
func (d *Declared) Clone() *Declared {
	c := &Declared{
		Projects: slices.Clone(d.Projects), Templates: CloneTemplates(d.Templates), Keys: slices.Clone(d.Keys),
		Edges:    slices.Clone(d.Edges),
		Webhooks: slices.Clone(d.Webhooks), Logins: slices.Clone(d.Logins), Inbounds: slices.Clone(d.Inbounds),
		Defaults: clone(d.Defaults), Sealing: clone(d.Sealing),
	}
	for i := range c.Projects {
		p := &c.Projects[i]
		p.Project.Description, p.Project.Labels = clone(p.Project.Description), slices.Clone(p.Project.Labels)
		p.Project.Owner = clone(p.Project.Owner)
		p.Domains, p.Templates = slices.Clone(p.Domains), CloneTemplates(p.Templates)
		p.Service.SMSProvider = clone(p.Service.SMSProvider)
		p.SMTP, p.Auth.Rules = p.SMTP.Clone(), p.Auth.Rules.Clone()
	}
	for i := range c.Projects {
		for j := range c.Projects[i].Domains {
			d := &c.Projects[i].Domains[j]
			d.Certificates, d.Verified = clone(d.Certificates), clone(d.Verified)
		}
	}
	for i := range c.Keys {
		c.Keys[i].Projects = slices.Clone(c.Keys[i].Projects)
	}
	for i := range c.Webhooks {
		c.Webhooks[i] = c.Webhooks[i].Clone()
	}
	for i := range c.Logins {
		c.Logins[i] = c.Logins[i].Clone()
	}
	for i := range c.Inbounds {
		c.Inbounds[i] = c.Inbounds[i].Clone()
	}
	if s := c.Sealing; s != nil {
		s.Recipients = slices.Clone(s.Recipients)
	}
	if f := c.Defaults; f != nil {
		f.SMTP = f.SMTP.Clone()
		if f.Auth = clone(f.Auth); f.Auth != nil {
			f.Auth.Rules = f.Auth.Rules.Clone()
		}
		if f.Service = clone(f.Service); f.Service != nil {
			f.Service.SMSProvider = clone(f.Service.SMSProvider)
		}
		if f.Verification = clone(f.Verification); f.Verification != nil {
			f.Verification.Targets = slices.Clone(f.Verification.Targets)
			f.Verification.CAs = slices.Clone(f.Verification.CAs)
		}
	}
	return c
}

// CloneTemplates returns a copy of list that shares no mutable memory with it.
func CloneTemplates(list []Template) []Template {
	list = slices.Clone(list)
	for i := range list {
		list[i].Locales = slices.Clone(list[i].Locales)
	}
	return list
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

// A Ref identifies an object that a file declares, well enough to find and to remove it.
type Ref struct {
	_         struct{} `cbor:",toarray"`
	Kind      Kind
	Name      string // slug, canonical domain, template code, name of what has one; "" for defaults and sealing
	UUID      UUID   // zero for keys, edges, defaults, sealing
	ID        int64
	ProjectID int64  // of a domain or template; 0 for a default template
	KeyID     string // a key's public id, an edge's public key
}

// Lists yields the lists of projects of the keys, webhooks, logins and inbound blocks. That of a login has the slugs of all
// its rules.
func (d *Declared) Lists() iter.Seq2[ListHolder, []string] {
	return func(yield func(ListHolder, []string) bool) {
		for i := range d.Keys {
			if !yield(ListHolder{KindKey, d.Keys[i].Name}, d.Keys[i].Projects) {
				return
			}
		}
		for i := range d.Webhooks {
			if !yield(ListHolder{KindWebhook, d.Webhooks[i].Name}, d.Webhooks[i].Projects) {
				return
			}
		}
		for i := range d.Logins {
			if !yield(ListHolder{KindLogin, d.Logins[i].Name}, d.Logins[i].Slugs()) {
				return
			}
		}
		for i := range d.Inbounds {
			if !yield(ListHolder{KindInbound, d.Inbounds[i].Name}, d.Inbounds[i].Projects) {
				return
			}
		}
	}
}

// Shared counts the objects of d that belong to no project.
func (d *Declared) Shared() int {
	n := len(d.Templates) + len(d.Keys) + len(d.Edges) + len(d.Webhooks) + len(d.Logins) + len(d.Inbounds)
	if d.Defaults != nil {
		n++
	}
	if d.Sealing != nil {
		n++
	}
	return n
}

// DropNamed takes out what only a key for every project may see: keys, edges, webhooks, logins and inbound blocks.
func (d *Declared) DropNamed() {
	d.Keys, d.Edges, d.Webhooks, d.Logins, d.Inbounds = nil, nil, nil, nil, nil
}

// Refs lists the objects of d that are stored separately.
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
	templates := func(list []Template, project int64) {
		for i := range list {
			t := &list[i]
			yield(Ref{Kind: KindTemplate, Name: t.Code, UUID: t.UUID, ID: t.ID, ProjectID: project})
		}
	}
	for i := range d.Projects {
		p := &d.Projects[i]
		yield(Ref{Kind: KindProject, Name: p.Project.Slug, UUID: p.Project.UUID, ID: p.Project.ID})
		for j := range p.Domains {
			dom := &p.Domains[j]
			yield(Ref{Kind: KindDomain, Name: dom.Name, UUID: dom.UUID, ID: dom.ID, ProjectID: p.Project.ID})
		}
		templates(p.Templates, p.Project.ID)
	}
	templates(d.Templates, 0)
	for i := range d.Keys {
		yield(Ref{Kind: KindKey, Name: d.Keys[i].Name, KeyID: d.Keys[i].ID})
	}
	for i := range d.Edges {
		yield(Ref{Kind: KindEdge, Name: d.Edges[i].Name, KeyID: d.Edges[i].PublicKey})
	}
	for i := range d.Webhooks {
		yield(Ref{Kind: KindWebhook, Name: d.Webhooks[i].Name, UUID: d.Webhooks[i].UUID})
	}
	for i := range d.Logins {
		yield(Ref{Kind: KindLogin, Name: d.Logins[i].Name, UUID: d.Logins[i].UUID})
	}
	for i := range d.Inbounds {
		yield(Ref{Kind: KindInbound, Name: d.Inbounds[i].Name, UUID: d.Inbounds[i].UUID})
	}
	if d.Defaults != nil {
		yield(Ref{Kind: KindDefaults})
	}
	if d.Sealing != nil {
		yield(Ref{Kind: KindSealing})
	}
}

// A Stamp identifies the content of a file: all fields but the hash are cheap to compare, the hash decides.
type Stamp struct {
	Size    int64
	ModTime time.Time
	Changed time.Time // time of the last inode change (ctime), which cannot be set back; zero if unknown
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
	Deps  []Dep // the files named by its file() calls
	Refs  []Ref // what it declares, if the row comes from a Sink; ignored in a Change
	// Warned: decoding it gave warnings, so the next start parses it again to show them. The Stamp of such a row that
	// comes from a Sink has no Hash.
	Warned bool
}

// A Dep is a file whose text a config file uses.
type Dep struct {
	Path  string // slash-separated, below the config folder
	Stamp Stamp
}

// A FileChange is the change of one file.
type FileChange struct {
	Path string // slash-separated, below the config folder
	Row  *FileRow
	// Declared replaces everything that the file declared before. Nil with a Row: only the row is new, the objects stay
	// (the file was touched). Nil without a Row: the file is gone, and so are its objects, unless another file of the same
	// Change declares them.
	Declared *Declared
	Bytes    []byte // the accepted content, stored as the file's last good state; set with Declared
	// By is the client of a write, or with DoorGit the author of what a pull has brought. Nil: somebody has saved or
	// removed the file.
	By *Author
	// Others are the authors of what changes in single projects of the file, by id, where they are not By.
	Others map[int64]*Author
	// Waits: the client waits for the answer. The change is not made unless the audit trail has it.
	Waits bool
	// Times, if there are any, are those of objects in Declared: an edge takes them from its authority, and a store that
	// has lost its last commits from the audit trail.
	Times []ObjectTime
}

// A Change is the differences found by one check of the files: one batch.
type Change struct {
	Files []FileChange
	// Texts are files that config files name, with the content that was accepted with them.
	Texts []TextChange
	// Refused is the content of files that an edge has received and does not accept. A file that is accepted, or gone, is
	// not refused any more.
	Refused []TextChange
	// Position, on an edge, is the authority's after the change, and becomes the edge's in the same batch. Nil: the next
	// generation of this node.
	Position *Position
	// Recording is called before the entries of the change are written durably into the audit trail, and what it returns
	// afterwards. Nil: nobody measures that.
	Recording func() (done func())
}

// A TextChange is the new content of a file that is kept as bytes only.
type TextChange struct {
	Path  string
	Bytes []byte
	Gone  bool // there is no such content any more
}
