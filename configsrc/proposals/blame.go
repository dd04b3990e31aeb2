package proposals

import (
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// A Conflict is a field that keeps a proposal from being merged, and who has changed it meanwhile.
type Conflict struct {
	catalog.Clash
	By string    // as the audit trail names the author; "": it does not know
	At time.Time // zero: not known
}

// A blamed is the conflicts of a proposal.
type blamed struct {
	commit, head string
	generation   uint64
	conflicts    []Conflict
}

// blameEntries is how many entries of a project's audit trail are searched, the latest first. blameNewest is that for
// what belongs to no project.
const (
	blameEntries = 200
	blameNewest  = 2000
)

// blame says for each conflict of a proposal who has changed the field, and when, once for each HEAD, last commit and
// generation.
func (s *Set) blame(found *gitrepo.Proposal) ([]Conflict, error) {
	if len(found.Clashes) == 0 {
		return nil, nil
	}
	now := &blamed{commit: found.Commit, head: found.Head, generation: s.live.Generation()}
	s.mu.Lock()
	last := s.blamed[found.Name]
	s.mu.Unlock()
	if last != nil && last.commit == now.commit && last.head == now.head && last.generation == now.generation {
		return last.conflicts, nil
	}
	trails := map[int64][]catalog.AuditEntry{}
	for _, c := range found.Clashes {
		entries, known := trails[c.ProjectID]
		if !known {
			q := catalog.AuditQuery{ProjectID: c.ProjectID, Page: 1, Limit: blameEntries}
			if c.ProjectID == 0 {
				q.Newest = blameNewest
			}
			page, err := s.live.Audit(q)
			if err != nil {
				return nil, err
			}
			entries = page.Entries
			trails[c.ProjectID] = entries
		}
		one := Conflict{Clash: c}
		if i := slices.IndexFunc(entries, func(e catalog.AuditEntry) bool { return changes(&e, &c) }); i >= 0 {
			e := &entries[i]
			one.At = e.Time
			if one.By = e.Actor; one.By == "" {
				one.By = e.Key
			}
		}
		now.conflicts = append(now.conflicts, one)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blamed[found.Name] = now
	return now.conflicts, nil
}

// changes reports whether an entry of the audit trail of a clash's project tells of the live side of the clash.
func changes(e *catalog.AuditEntry, c *catalog.Clash) bool {
	if c.Kind == catalog.KindProject && c.Field == "" && c.Removes { // something below it has changed
		return true
	}
	noun, verb, _ := strings.Cut(e.Action, ".")
	if noun != strings.ReplaceAll(string(c.Kind), "_", "-") {
		return false
	}
	switch c.Kind {
	case catalog.KindDomain, catalog.KindTemplate, catalog.KindKey: // of the others a project has one
		if e.Object != c.Object {
			return false
		}
	}
	if c.Field == "" {
		return verb == "delete"
	}
	return slices.ContainsFunc(e.Changes, func(f catalog.FieldChange) bool { return f.Field == c.Field })
}
