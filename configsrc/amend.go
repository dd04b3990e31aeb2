package configsrc

import (
	"bytes"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// An amender changes what a look finds in the folder itself.
type amender struct {
	*base
	files *configFolder
	find  *finder
}

// amend changes a file that a look has found, before it is judged, and returns it as it is then; nil: it is gone. It
// keeps to the rules of writes: a file that somebody saves or that git works on stays, and the change is in the
// Journal, so that it is committed. subject says in one line what changes.
func (a *amender) amend(t *folder.Tree, c *judge.Candidate, subject string,
	edit func(src []byte) ([]byte, error)) (*judge.Candidate, error) {
	a.files.git.lock()
	defer a.files.git.unlock()
	if a.files.git.state().working() {
		return nil, errGitBusy
	}
	f, _, err := a.files.OpenSwap(t, c.Path)
	if err != nil {
		return nil, err
	}
	var noted *catalog.FileWrite
	err = a.files.folder.Edit(c.Path, func(src []byte) ([]byte, error) {
		content, err := edit(src)
		if err != nil || a.o.Journal == nil || bytes.Equal(content, src) {
			return content, err
		}
		if noted != nil { // a save came in between
			a.o.Journal.End(noted, false)
			noted = nil
		}
		w := &catalog.FileWrite{Author: catalog.Author{Door: catalog.DoorFile, RequestID: catalog.NewUUID().String()},
			Subject: subject, Files: []catalog.FileEdit{{Path: f.Path, Before: src, After: content}}}
		if err := a.o.Journal.Begin(w); err != nil {
			return nil, err
		}
		noted = w
		return content, nil
	})
	if noted != nil {
		a.o.Journal.End(noted, err == nil)
	}
	if err != nil {
		return nil, err
	}
	e, _, there := t.Stat(c.Path)
	if !there {
		return nil, nil
	}
	again := a.find.examineOne(t, e, c.Prev)
	if again != nil {
		again.Found = c.Bytes
	}
	return again, nil
}

// clearLeftovers finishes or undoes what interrupted writes have left, on a node that may write, and returns the files
// that this changes.
func (a *amender) clearLeftovers(paths []string) (changed []string) {
	if a.o.ReadOnly {
		return nil
	}
	return a.files.folder.Clear(paths)
}
