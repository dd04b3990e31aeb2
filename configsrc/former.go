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

// The uuid of a project without a uuid line follows from its slug, and the proofs of its domains follow from the uuid. So
// the slug of a removed project, used again in a file, would hand its domains' proofs to another customer. The Sink
// remembers removed projects for a year (catalog.Former). One that comes back as another gets a warning, and where keys
// need proofs the node that writes makes its domains pending, at the look that finds it. What the verification then takes
// for a proof is in package verify.

// formers returns what is known of removed projects; nothing while the Sink cannot tell.
func (s *Source) formers() map[catalog.UUID]catalog.Former {
	if s.former == nil {
		known, err := catalog.Formers(s.o.Sink)
		if err != nil {
			return nil
		}
		s.former = known
	}
	return s.former
}

// setFormers stores what is known of some uuids, durably, and forgets what is older than a year. After an error, nothing
// has changed.
func (s *Source) setFormers(set map[catalog.UUID]catalog.Former) error {
	if len(set) == 0 {
		return nil
	}
	known := s.formers()
	values := map[string][]byte{}
	for uuid, f := range known {
		if f.Old(s.now()) {
			values[catalog.FormerName(uuid)] = nil
		}
	}
	for uuid, f := range set {
		values[catalog.FormerName(uuid)] = f.Value()
	}
	if err := s.o.Sink.SetNamed(values); err != nil || known == nil { // nil: the next reading has it
		return err
	}
	for uuid, f := range known {
		if f.Old(s.now()) {
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
func (s *Source) addRemoved(to map[catalog.UUID]catalog.Former, removed map[judge.Claim]bool, path string, refs []catalog.Ref,
	src []byte) {
	var decoded *hclfile.Result
	for _, ref := range refs {
		if ref.Kind != catalog.KindProject || !removed[judge.ProjectClaim(ref.UUID)] {
			continue
		}
		if decoded == nil {
			decoded = judge.Positions(s.display(path), src)
		}
		sum := decoded.Digest(ref)
		to[ref.UUID] = catalog.Former{Removed: s.now().UTC(), Block: sum[:], Other: s.otherSince(ref.UUID)}
	}
}

// otherSince returns when another project has come with a uuid, zero if none has.
func (s *Source) otherSince(uuid catalog.UUID) time.Time {
	if known := s.formers(); known != nil {
		return known[uuid].Other
	}
	f, err := catalog.FormerOf(s.o.Sink, uuid) // the list cannot be read, one perhaps can
	if err != nil {
		return time.Time{}
	}
	return f.Other
}

// rememberRemoved remembers the projects that a look removes. A Sink that refuses changes nothing: people's files count.
func (s *Source) rememberRemoved(found *finding, removed []judge.Claim) {
	set, of := map[catalog.UUID]catalog.Former{}, setOf(removed)
	for _, c := range found.candidates {
		if c.Prev == nil || c.Out() || c.Prev.Counts.Projects == 0 {
			continue
		}
		row, err := s.o.Sink.File(c.Path)
		if err != nil {
			continue
		}
		src, err := s.o.Sink.LastGood(c.Path)
		if err != nil {
			continue
		}
		s.addRemoved(set, of, c.Path, row.Refs, src)
	}
	if err := s.setFormers(set); err != nil {
		s.o.Logger.Warn("which projects are removed cannot be noted: one that comes back counts as the same", "error", err)
	}
}

// replaced reports whether a project that a file declares anew has the uuid of a former one, and is another.
func (s *Source) replaced(p *catalog.Project, decoded *hclfile.Result) bool {
	f, known := s.formers()[p.UUID]
	if !known || s.table.Owner(judge.ProjectClaim(p.UUID)) != nil {
		return false
	}
	sum := decoded.Digest(projectRef(p))
	return f.Replaced(sum[:], s.now())
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
// the files, where keys need proofs and this node writes. It returns the files that are busy at this moment: they wait for
// the next look.
func (s *Source) holdReplaced(t *folder.Tree, candidates []*judge.Candidate) (wait map[string]bool) {
	if len(s.formers()) == 0 {
		return nil
	}
	wait = map[string]bool{}
	for i, c := range candidates {
		list := s.replacements(c)
		if len(list) > 0 && s.requiresProof(candidates) && !s.o.ReadOnly {
			again, err := s.makePending(t, c, list)
			switch {
			case isPassing(err):
				wait[c.Path] = true
			case err != nil:
				s.o.Logger.Warn("the domains of a slug that is used again cannot be made pending in their file", "file",
					s.display(c.Path), "error", err)
			case again != nil:
				c, candidates[i] = again, again
			}
		}
		s.warnReplaced(c, list)
	}
	return wait
}

// isPassing reports whether a file could not be changed because somebody is at work on it, or because the Journal refuses.
func isPassing(err error) bool {
	return errors.Is(err, atomicfile.ErrChanged) || errors.Is(err, atomicfile.ErrLocked) ||
		errors.As(err, new(*catalog.Error))
}

// replacements lists the projects of a file that are another's now, and those that were when they came, and still have
// domains without a proof.
func (s *Source) replacements(c *judge.Candidate) (list []replacement) {
	if c.Declared == nil || c.Diags.HasErrors() || !s.declaresFormer(c.Declared) {
		return nil
	}
	decoded := judge.Positions(s.display(c.Path), c.Bytes)
	for i := range c.Declared.Projects {
		p := &c.Declared.Projects[i]
		r := replacement{project: p.Project}
		anew := s.replaced(&p.Project, decoded)
		held := !s.formers()[p.Project.UUID].Other.IsZero()
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
func (s *Source) makePending(t *folder.Tree, c *judge.Candidate, list []replacement) (*judge.Candidate, error) {
	open := 0
	for i := range list {
		open += len(list[i].open)
	}
	if open == 0 {
		return nil, nil
	}
	return s.amend(t, c, "the domains of a slug that is used again are pending", func(src []byte) (_ []byte, err error) {
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
func (s *Source) warnReplaced(c *judge.Candidate, list []replacement) {
	if len(list) == 0 {
		return
	}
	decoded := judge.Positions(s.display(c.Path), c.Bytes)
	for i := range list {
		p := &list[i].project
		c.Diags = append(c.Diags, decoded.Diagnose(projectRef(p), hclfile.Warning,
			fmt.Sprintf("project %q has the uuid of a project that was removed, and is another", p.Slug),
			"a DNS record that proves a domain of the former one proves it for this one, so it counts only once it was gone; "+
				"for a uuid of its own, add this line to the block: uuid = \"new\""))
	}
}

func (s *Source) declaresFormer(d *catalog.Declared) bool {
	for i := range d.Projects {
		if _, known := s.formers()[d.Projects[i].Project.UUID]; known {
			return true
		}
	}
	return false
}

// requiresProof reports whether keys need proofs once the candidates are accepted.
func (s *Source) requiresProof(candidates []*judge.Candidate) bool {
	for _, c := range candidates {
		if c.Declared != nil && c.Declared.Defaults != nil {
			return c.Declared.Defaults.Requires()
		}
	}
	return s.o.Sink.Defaults().Requires()
}

// settleFormers notes what has become of the former projects that the accepted candidates declare.
func (s *Source) settleFormers(candidates []*judge.Candidate) {
	set := map[catalog.UUID]catalog.Former{}
	for _, c := range candidates {
		if c.Out() || c.Declared == nil || len(s.former) == 0 || !s.declaresFormer(c.Declared) {
			continue
		}
		decoded := judge.Positions(s.display(c.Path), c.Bytes)
		for i := range c.Declared.Projects {
			p := &c.Declared.Projects[i].Project
			f, known := s.former[p.UUID]
			if !known || f.Removed.IsZero() {
				continue
			}
			if s.replaced(p, decoded) {
				f.Other = s.now().UTC()
			}
			set[p.UUID] = catalog.Former{Other: f.Other}
		}
	}
	if err := s.setFormers(set); err != nil {
		s.o.Logger.Warn("what has become of removed projects cannot be noted", "error", err)
	}
}
