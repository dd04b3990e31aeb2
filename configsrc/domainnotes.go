package configsrc

import (
	"errors"

	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// domainNotes are the notes about names of a project that come or go with a write, see names.NotesOf. They are made before
// the files change: a note of a record that does not exist says nothing, and a record without its note would be free.
type domainNotes struct {
	project catalog.UUID
	had, is map[string]string
}

// noteDomains implements workspace.
func (s *Source) noteDomains(n *domainNotes) error {
	for name, note := range n.is {
		if err := s.setDomainNote(n.project, name, note); err != nil {
			s.forgetNotes(n)
			return err
		}
	}
	return nil
}

// forgetNotes implements workspace: the write was refused.
func (s *Source) forgetNotes(n *domainNotes) {
	var failed error
	for name := range n.is {
		failed = errors.Join(failed, s.setDomainNote(n.project, name, n.had[name]))
	}
	if failed != nil {
		s.o.Logger.Warn("what was noted for a write that was refused stays", "error", failed)
	}
}

func (s *Source) setDomainNote(project catalog.UUID, name, note string) error {
	var value []byte
	if note != "" {
		value = []byte(note)
	}
	return s.o.Sink.SetNamed(names.NoteName(project, name), value)
}
