package configsrc

import (
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// The uuid of a project without a uuid line follows from its slug, and the proofs of its domains follow from the uuid.
// So the slug of a removed project, used again in a file, would hand its domains' proofs to another customer. The Sink
// remembers removed projects for a year (catalog.Former). One that comes back as another gets a warning, and where keys
// need proofs the node that writes makes its domains pending, at the look that finds it. What the verification then
// takes for a proof is in package verify.

// formers are the removed projects that the Sink remembers. The goroutine that looks owns them.
type formers struct {
	*base
	amends *amender
	byUUID map[catalog.UUID]catalog.Former // nil: not read yet
}

// all returns what is known of removed projects; nothing while the Sink cannot tell.
func (m *formers) all() map[catalog.UUID]catalog.Former {
	if m.byUUID == nil {
		known, err := catalog.Formers(m.o.Sink)
		if err != nil {
			return nil
		}
		m.byUUID = known
	}
	return m.byUUID
}

// setAll stores what is known of some uuids, durably, and forgets what is older than a year. After an error, nothing
// has changed.
func (m *formers) setAll(set map[catalog.UUID]catalog.Former) error {
	if len(set) == 0 {
		return nil
	}
	known := m.all()
	values := map[string][]byte{}
	for uuid, f := range known {
		if f.Old(m.o.now()) {
			values[catalog.FormerName(uuid)] = nil
		}
	}
	for uuid, f := range set {
		values[catalog.FormerName(uuid)] = f.Value()
	}
	if err := m.o.Sink.SetNamed(values); err != nil || known == nil { // nil: the next reading has it
		return err
	}
	for uuid, f := range known {
		if f.Old(m.o.now()) {
			delete(known, uuid)
		}
	}
	for uuid, f := range set {
		if known[uuid] = f; f.Value() == nil {
			delete(known, uuid)
		}
	}
	return nil
}

// addRemoved adds the projects of a file that are among the removed claims to what is to be remembered. src is the file
// as it was accepted, with these objects.
func (m *formers) addRemoved(to map[catalog.UUID]catalog.Former, removed map[judge.Claim]bool, path string,
	refs []catalog.Ref, src []byte) {
	var decoded *hclfile.Result
	for _, ref := range refs {
		if ref.Kind != catalog.KindProject || !removed[judge.ProjectClaim(ref.UUID)] {
			continue
		}
		if decoded == nil {
			decoded = judge.Positions(m.Display(path), src)
		}
		sum := decoded.Digest(ref)
		to[ref.UUID] = catalog.Former{Removed: m.o.now().UTC(), Block: sum[:], Other: m.otherSince(ref.UUID)}
	}
}

// otherSince returns when another project has come with a uuid, zero if none has.
func (m *formers) otherSince(uuid catalog.UUID) time.Time {
	if known := m.all(); known != nil {
		return known[uuid].Other
	}
	f, err := catalog.FormerOf(m.o.Sink, uuid) // the list cannot be read, one perhaps can
	if err != nil {
		return time.Time{}
	}
	return f.Other
}

// noteRemoved remembers the projects that a look removes. A Sink that refuses changes nothing: people's files count.
func (m *formers) noteRemoved(candidates []*judge.Candidate, removed []judge.Claim) {
	set, of := map[catalog.UUID]catalog.Former{}, judge.SetOf(removed)
	for _, c := range candidates {
		if c.Prev == nil || c.Out() || c.Prev.Counts.Projects == 0 {
			continue
		}
		row, err := m.o.Sink.File(c.Path)
		if err != nil {
			continue
		}
		src, err := m.o.Sink.LastGood(c.Path)
		if err != nil {
			continue
		}
		m.addRemoved(set, of, c.Path, row.Refs, src)
	}
	if err := m.setAll(set); err != nil {
		m.o.Logger.Warn("which projects are removed cannot be noted: one that comes back counts as the same", "error", err)
	}
}

// isReplaced reports whether a project that a file declares anew has the uuid of a former one, and is another.
func (m *formers) isReplaced(p *catalog.Project, decoded *hclfile.Result) bool {
	f, known := m.all()[p.UUID]
	if !known || m.Table.Owner(judge.ProjectClaim(p.UUID)) != nil {
		return false
	}
	sum := decoded.Digest(projectRef(p))
	return f.Replaced(sum[:], m.o.now())
}

func projectRef(p *catalog.Project) catalog.Ref {
	return catalog.Ref{Kind: catalog.KindProject, Name: p.Slug, UUID: p.UUID, ID: p.ID}
}

// A replacement is a project that has the uuid of a former one, and is another.
type replacement struct {
	project catalog.Project
	open    []hcledit.BlockPath // its domains that are to be made pending
}

// holdReplaced warns of projects that have the uuid of a former one and are another, and makes their domains pending in
// the files, where keys need proofs and this node writes. It returns the files that are busy at this moment: they wait
// for the next look.
func (m *formers) holdReplaced(t *folder.Tree, candidates []*judge.Candidate) (wait map[string]bool) {
	if len(m.all()) == 0 {
		return nil
	}
	wait = map[string]bool{}
	for i, c := range candidates {
		list := m.replacements(c)
		if len(list) > 0 && m.requiresProof(candidates) && !m.o.ReadOnly {
			again, err := m.makePending(t, c, list)
			switch {
			case isPassing(err):
				wait[c.Path] = true
			case err != nil:
				m.o.Logger.Warn("the domains of a slug that is used again cannot be made pending in their file", "file",
					m.Display(c.Path), "error", err)
			case again != nil:
				c, candidates[i] = again, again
			}
		}
		m.warnReplaced(c, list)
	}
	return wait
}

// isPassing reports whether a file could not be changed because somebody is at work on it, or because the Journal
// refuses.
func isPassing(err error) bool {
	return errors.Is(err, atomicfile.ErrChanged) || errors.Is(err, atomicfile.ErrLocked) ||
		errors.As(err, new(*catalog.Error))
}

// replacements lists the projects of a file that are another's now, and those that were when they came, and still have
// domains without a proof.
func (m *formers) replacements(c *judge.Candidate) (list []replacement) {
	if c.Declared == nil || c.Diags.HasErrors() || !m.declaresFormer(c.Declared) {
		return nil
	}
	decoded := judge.Positions(m.Display(c.Path), c.Bytes)
	for i := range c.Declared.Projects {
		p := &c.Declared.Projects[i]
		r := replacement{project: p.Project}
		anew := m.isReplaced(&p.Project, decoded)
		held := !m.all()[p.Project.UUID].Other.IsZero()
		waits := false
		for j := range p.Domains {
			switch d := &p.Domains[j]; {
			case d.Verified != nil && (*d.Verified == catalog.VerifiedPending || *d.Verified == catalog.VerifiedLost):
				waits = true
			case anew:
				r.open = append(r.open, hcledit.BlockPath{"project", p.Project.Slug, "domain", d.Name})
			}
		}
		if anew || held && waits {
			list = append(list, r)
		}
	}
	return list
}

// makePending makes the open domains of a file's replacements pending, and returns the file as it is then.
func (m *formers) makePending(t *folder.Tree, c *judge.Candidate, list []replacement) (*judge.Candidate, error) {
	open := 0
	for i := range list {
		open += len(list[i].open)
	}
	if open == 0 {
		return nil, nil
	}
	subject := "the domains of a slug that is used again are pending"
	return m.amends.amend(t, c, subject, func(src []byte) (_ []byte, err error) {
		for i := range list {
			for _, at := range list[i].open {
				if src, err = hcledit.SetAttribute(src, at, "verified", hcledit.Quote(catalog.VerifiedPending)); err != nil {
					return nil, err
				}
			}
		}
		return src, nil
	})
}

// warnReplaced adds a warning about each replacement to the problems of its file.
func (m *formers) warnReplaced(c *judge.Candidate, list []replacement) {
	if len(list) == 0 {
		return
	}
	decoded := judge.Positions(m.Display(c.Path), c.Bytes)
	for i := range list {
		p := &list[i].project
		c.Diags = append(c.Diags, decoded.Diagnose(projectRef(p), hclfile.Warning,
			fmt.Sprintf("project %q has the uuid of a project that was removed, and is another", p.Slug),
			"a DNS record that proves a domain of the former one proves it for this one, so it counts only once it was gone; "+
				"for a uuid of its own, add this line to the block: uuid = \"new\""))
	}
}

func (m *formers) declaresFormer(d *catalog.Declared) bool {
	for i := range d.Projects {
		if _, known := m.all()[d.Projects[i].Project.UUID]; known {
			return true
		}
	}
	return false
}

// requiresProof reports whether keys need proofs once the candidates are accepted.
func (m *formers) requiresProof(candidates []*judge.Candidate) bool {
	for _, c := range candidates {
		if c.Declared != nil && c.Declared.Defaults != nil {
			return c.Declared.Defaults.Requires()
		}
	}
	return m.o.Sink.Defaults().Requires()
}

// noteReturned notes what has become of the former projects that the accepted candidates declare.
func (m *formers) noteReturned(candidates []*judge.Candidate) {
	set := map[catalog.UUID]catalog.Former{}
	for _, c := range candidates {
		if c.Out() || c.Declared == nil || len(m.byUUID) == 0 || !m.declaresFormer(c.Declared) {
			continue
		}
		decoded := judge.Positions(m.Display(c.Path), c.Bytes)
		for i := range c.Declared.Projects {
			p := &c.Declared.Projects[i].Project
			f, known := m.byUUID[p.UUID]
			if !known || f.Removed.IsZero() {
				continue
			}
			if m.isReplaced(p, decoded) {
				f.Other = m.o.now().UTC()
			}
			set[p.UUID] = catalog.Former{Other: f.Other}
		}
	}
	if err := m.setAll(set); err != nil {
		m.o.Logger.Warn("what has become of removed projects cannot be noted", "error", err)
	}
}
