package configsrc

import (
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
	return s.setDomainNotes(n, n.is)
}

// forgetNotes implements workspace: the write was refused.
func (s *Source) forgetNotes(n *domainNotes) {
	if err := s.setDomainNotes(n, n.had); err != nil {
		s.o.Logger.Warn("what was noted for a write that was refused stays", "error", err)
	}
}

// setDomainNotes gives the names of n.is the notes in to.
func (s *Source) setDomainNotes(n *domainNotes, to map[string]string) error {
	values := map[string][]byte{}
	for name := range n.is {
		var value []byte
		if note := to[name]; note != "" {
			value = []byte(note)
		}
		values[names.NoteName(n.project, name)] = value
	}
	if len(values) == 0 {
		return nil
	}
	return s.o.Sink.SetNamed(values)
}
