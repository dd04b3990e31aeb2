package configsrc

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// quarantineFile keeps a file's new content out; its last good state stays in the Sink. It is logged once, not with
// every look.
func (s *base) quarantineFile(c *judge.Candidate) {
	diags := append(append(hclfile.Diagnostics{}, c.Diags...), c.Cross...)
	diags.Sort()
	by := s.broughtBy(c)
	if c.Refused != nil { // it was not read again
		by = c.Refused.By
	}
	if by != nil {
		for i := range diags {
			diags[i].Detail = strings.TrimPrefix(fmt.Sprintf("%s; it came with commit %.12s of %s", diags[i].Detail, by.Commit,
				by.Actor), "; ")
		}
	}
	old := s.Quarantine[c.Path]
	now := &judge.Quarantined{Sign: c.Sign(), Diags: diags, By: by}
	switch {
	case c.Refused != nil:
		now.Broken, now.Stamp, now.Deps = c.Refused.Broken, c.Refused.Stamp, c.Refused.Deps
	case c.Declared == nil && c.Bytes != nil && age(c.Stamp, time.Now()) >= racyFor:
		now.Broken, now.Stamp, now.Deps = c.Diags, c.Stamp, c.Deps
	}
	s.Quarantine[c.Path] = now
	if old != nil && old.Sign == c.Sign() && sameDiagnostics(old.Diags, diags) {
		return
	}
	for _, d := range diags {
		if d.Severity == hclfile.Error {
			s.o.Logger.Error("config file quarantined, its last good state stays", "problem", d.Summary, "hint", d.Detail,
				"file", d.File, "line", d.Start.Line, "column", d.Start.Column)
		}
	}
}

// forgetQuarantined forgets a file that is back in its accepted state, or gone without ever being accepted.
func (s *base) forgetQuarantined(path string) {
	s.Known.Lock()
	defer s.Known.Unlock()
	delete(s.Quarantine, path)
}

// acceptFile records that a file is accepted.
func (s *base) acceptFile(c *judge.Candidate) {
	if s.Quarantine[c.Path] != nil && s.Quarantine[c.Path].Diags.HasErrors() {
		s.o.Logger.Info("config file is good again", "file", s.Display(c.Path))
	}
	delete(s.Quarantine, c.Path)
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

// manyQuarantined is how many quarantined files are retried with every event; beyond it they wait for the sweep.
const manyQuarantined = 200

// lastGood restores what a quarantined file declared last, if the Sink does not have it in the needed form: after a
// change of the decoder, or while a lost store is rebuilt. Claims that others took in between stay theirs.
func (s *base) lastGood(c *judge.Candidate) *judge.Candidate {
	if c.Prev != nil && !s.redecode {
		return nil
	}
	b, err := s.o.Sink.LastGood(c.Path)
	if err != nil || b == nil {
		return nil
	}
	t, err := s.OpenTree()
	if err != nil {
		return nil
	}
	defer t.Close()
	old := &judge.Candidate{Path: c.Path, Prev: c.Prev, Content: judge.Content{Bytes: b},
		Stamp: catalog.Stamp{Hash: sha256.Sum256(b)}}
	if old.Decode(s.Display(c.Path), t, hclfile.Rules{}); old.Declared == nil {
		return nil
	}
	for _, cl := range old.Claims {
		if owner := s.Table.Owner(cl); owner != nil && owner.Path != c.Path {
			return nil
		}
	}
	return old
}

// broughtBy returns who has brought a file that was found in the folder, or a file that it names: nil if somebody has
// saved it here.
func (s *base) broughtBy(c *judge.Candidate) *catalog.Author {
	if s.o.AuthorOf == nil || c.By != nil {
		return nil
	}
	content := c.Bytes
	if c.Found != nil {
		content = c.Found
	}
	if by := s.o.AuthorOf(c.Path, content); by != nil {
		return by
	}
	for path, content := range c.Texts {
		if by := s.o.AuthorOf(path, content); by != nil {
			return by
		}
	}
	return nil
}
