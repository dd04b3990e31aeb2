package configsrc

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// noteQuarantined keeps a file's new content out; its last good state stays in the Sink. It is logged once, not with
// every look.
func (s *Source) noteQuarantined(c *candidate) {
	diags := append(append(hclfile.Diagnostics{}, c.diags...), c.cross...)
	diags.Sort()
	by := s.broughtBy(c)
	if c.refused != nil { // it was not read again
		by = c.refused.by
	}
	if by != nil {
		for i := range diags {
			diags[i].Detail = strings.TrimPrefix(fmt.Sprintf("%s; it came with commit %.12s of %s", diags[i].Detail, by.Commit,
				by.Actor), "; ")
		}
	}
	old := s.quarantine[c.path]
	now := &quarantined{sign: c.sign(), diags: diags, by: by}
	switch {
	case c.refused != nil:
		now.broken, now.stamp, now.deps = c.refused.broken, c.refused.stamp, c.refused.deps
	case c.declared == nil && c.bytes != nil && age(c.stamp, time.Now()) >= racyFor:
		now.broken, now.stamp, now.deps = c.diags, c.stamp, c.deps
	}
	s.quarantine[c.path] = now
	if old != nil && old.sign == c.sign() && sameDiagnostics(old.diags, diags) {
		return
	}
	for _, d := range diags {
		if d.Severity == hclfile.Error {
			s.o.Logger.Error("config file quarantined, its last good state stays", "problem", d.Summary, "hint", d.Detail,
				"file", d.File, "line", d.Start.Line, "column", d.Start.Column)
		}
	}
}

// unquarantine forgets a file that is back in its accepted state, or gone without ever being accepted.
func (s *Source) unquarantine(path string) {
	s.known.Lock()
	defer s.known.Unlock()
	delete(s.quarantine, path)
}

// accept records an accepted file, with its warnings.
func (s *Source) accept(c *candidate) {
	if s.quarantine[c.path] != nil && s.quarantine[c.path].diags.HasErrors() {
		s.o.Logger.Info("config file is good again", "file", s.display(c.path))
	}
	delete(s.quarantine, c.path)
	s.warnings.note(c)
}

func sameDiagnostics(a, b hclfile.Diagnostics) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Summary != b[i].Summary || a[i].Start != b[i].Start || a[i].Severity != b[i].Severity {
			return false
		}
	}
	return true
}

// forgetAbsent drops quarantined files that were never accepted and no longer exist. Existing quarantined files are
// always in todo.
func (s *Source) forgetAbsent(todo []folder.Entry) {
	there := make(map[string]bool, len(s.quarantine))
	for i := range todo {
		if s.quarantine[todo[i].Path] != nil {
			there[todo[i].Path] = true
		}
	}
	for p := range s.quarantine {
		if s.table.files[p] == nil && !there[p] {
			s.unquarantine(p)
		}
	}
}

// manyQuarantined is how many quarantined files are retried with every event; beyond it they wait for the sweep.
const manyQuarantined = 200

// lastGood restores what a quarantined file declared last, if the Sink does not have it in the needed form: after a
// change of the decoder, or while a lost store is rebuilt. Claims that others took in between stay theirs.
func (s *Source) lastGood(c *candidate) *candidate {
	if c.prev != nil && !s.redecode {
		return nil
	}
	b, err := s.o.Sink.LastGood(c.path)
	if err != nil || b == nil {
		return nil
	}
	t, err := s.openTree()
	if err != nil {
		return nil
	}
	defer t.Close()
	old := &candidate{path: c.path, prev: c.prev, content: content{bytes: b},
		stamp: catalog.Stamp{Hash: sha256.Sum256(b)}}
	if old.decode(s.display(c.path), t, ""); old.declared == nil {
		return nil
	}
	for _, cl := range old.claims {
		if owner := s.table.owner(cl); owner != nil && owner.path != c.path {
			return nil
		}
	}
	return old
}

// broughtBy returns who has brought a file that was found in the folder, or a file that it names: nil if somebody has
// saved it here.
func (s *Source) broughtBy(c *candidate) *catalog.Author {
	if s.o.AuthorOf == nil || c.by != nil {
		return nil
	}
	if by := s.o.AuthorOf(c.path, c.bytes); by != nil {
		return by
	}
	for path, content := range c.texts {
		if by := s.o.AuthorOf(path, content); by != nil {
			return by
		}
	}
	return nil
}
