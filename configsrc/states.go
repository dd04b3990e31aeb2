package configsrc

import (
	"time"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A pathState is what a Source knows of a path below the config folder. What is served follows from the accepted
// content alone: in every state but pathUnknown it is the content that was accepted last, also while the file on the
// disk is another.
//
//	state            what it means                                  what ends it
//	pathUnknown      no file under this path was ever accepted      a file comes in: accepted, suspect or quarantined
//	pathAccepted     content, stamp and claims are in the table     its stamp or a dependency's changes: a look reads it
//	pathRacy         as pathAccepted, but its stamp proves nothing  its content is read once the stamp is old enough:
//	                                                                accepted; or it is other content: a look decodes it
//	pathSuspect      newly broken, empty, shorter by an object or   the same content and stamp at a second look, secondLook
//	                 gone: perhaps half-written                     later: accepted, quarantined or unknown. Other content:
//	                                                                suspect again, or accepted. For one that is gone, the
//	                                                                folder's stamp is the same, and no event has named it
//	pathQuarantined  its new content has an error, by itself or     content without an error, or the error's other file
//	                 with another file's                            changes: accepted. The file goes: suspect, then unknown
//
// A racy stamp is so young that a further write may leave it as it is (as in git's index), or belongs to a file that
// has to be decoded anew: with another decoder revision, or because it gave warnings in the process before. A racy
// stamp is trusted in one case: events name the path, and none of them is a write into the file. Such a file was put
// there whole, under its name (folder.Seen.Replaced), and a further one has another inode.
//
// The brake is no state of a path: it holds a look back as a whole, and then no path moves (brake.go).
type pathState int

const (
	pathUnknown pathState = iota
	pathAccepted
	pathRacy
	pathSuspect
	pathQuarantined
)

// pathStates say in which state a path is. The goroutine that looks owns them.
type pathStates struct {
	*base
	suspects map[string]suspect
}

func newPathStates(b *base) *pathStates { return &pathStates{b, map[string]suspect{}} }

func (s *pathStates) forgetSuspects() { s.suspects = map[string]suspect{} }

// stateOf returns the state of a path. A suspect may be in quarantine as well: it is a suspect as long as it waits.
func (s *pathStates) stateOf(path string) pathState {
	if _, suspect := s.suspects[path]; suspect {
		return pathSuspect
	}
	if s.Quarantine[path] != nil {
		return pathQuarantined
	}
	switch f := s.Table.Files[path]; {
	case f == nil:
		return pathUnknown
	case f.Racy.Load():
		return pathRacy
	}
	return pathAccepted
}

// racyFor is how long after a write the file system may give a further write the same time.
const racyFor = 50 * time.Millisecond

// age returns the time since the later of a stamp's times. A stamp younger than racyFor is racy.
func age(s catalog.Stamp, now time.Time) time.Duration {
	if s.Changed.After(s.ModTime) {
		return now.Sub(s.Changed)
	}
	return now.Sub(s.ModTime)
}

// A suspect may be a half-written state: it needs a second look.
type suspect struct {
	sign  string
	stamp catalog.Stamp
	since time.Time
	tries int // of an absence: how often its second look could not tell
}

// isUntouched reports whether a candidate is the suspect, untouched: a file that is truncated and written again and
// again has the same content at many looks, and is half-written at each of them.
func (x *suspect) isUntouched(c *judge.Candidate) bool {
	return x.sign == c.Sign() && x.stamp.SameStat(c.Stamp)
}

// hasLasted reports whether an absence is the suspect, and has lasted: the folder has not changed and no event has
// named the path. In a folder that always changes, the events alone decide after a few tries.
func (x *suspect) hasLasted(c *judge.Candidate) bool {
	return !c.Named && (x.stamp.SameStat(c.Stamp) || x.tries >= absenceTries)
}

const absenceTries = 4

// secondLook is how long a suspicious state must hold.
const secondLook = 500 * time.Millisecond

// isSuspicious reports whether a candidate needs a second look: a file that is newly broken, empty, shorter by an object
// or gone may be between two system calls of its writer.
func (s *pathStates) isSuspicious(c *judge.Candidate, now time.Time) bool {
	if b := s.Quarantine[c.Path]; b != nil && b.Sign == c.Sign() && c.Rejected {
		return false // known to be broken
	}
	odd := c.Gone || c.Rejected || c.Prev != nil && len(c.Refs) < c.Prev.Objects
	if !odd {
		return false
	}
	first, known := s.suspects[c.Path]
	switch {
	case !known || first.sign != c.Sign() || now.Sub(first.since) < secondLook:
		return true
	case c.Gone:
		return !first.hasLasted(c)
	}
	return !first.isUntouched(c)
}

// noteSuspects records the files that wait for a second look, and when they were first seen. It reports whether there
// are any.
func (s *pathStates) noteSuspects(candidates []*judge.Candidate, now time.Time) (waiting bool) {
	for _, c := range candidates {
		if !c.Suspect {
			delete(s.suspects, c.Path)
			continue
		}
		waiting = true
		x, known := s.suspects[c.Path]
		known = known && x.sign == c.Sign()
		switch {
		case known && c.Gone && !c.Named && now.Sub(x.since) < secondLook, known && !c.Gone && x.isUntouched(c):
		case known && c.Gone && !c.Named:
			s.suspects[c.Path] = suspect{c.Sign(), c.Stamp, now, x.tries + 1}
		default:
			s.suspects[c.Path] = suspect{c.Sign(), c.Stamp, now, 0}
		}
	}
	return waiting
}

// nextLook returns when the oldest suspect may be looked at again.
func (s *pathStates) nextLook() time.Time {
	var first time.Time
	for _, x := range s.suspects {
		if at := x.since.Add(secondLook); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// sameAsKnown reports whether a file is unchanged by stat.
func sameAsKnown(t *folder.Tree, prev *judge.File, e folder.Entry) bool {
	return prev != nil && e.Err == nil && e.Stat.SameStat(prev.Stamp) && depsUnchanged(t, prev.Deps)
}

func depsUnchanged(t *folder.Tree, deps []catalog.Dep) bool {
	for _, d := range deps {
		info, err := t.StatFile(d.Path)
		if err != nil || !folder.StatOf(info).SameStat(d.Stamp) {
			return false
		}
	}
	return true
}

// depsAsKnown reports whether the files that a file takes text from have the content that was read.
func depsAsKnown(t *folder.Tree, deps []catalog.Dep) bool {
	for _, d := range deps {
		_, stamp, err := t.ReadNamed(d.Path, folder.MaxTextBytes)
		if err != nil || stamp.Hash != d.Stamp.Hash {
			return false
		}
	}
	return true
}
