package console

import (
	"slices"
	"strings"

	"fingerpost/api/client"
)

// What sessions keep between two requests has a budget, because everybody who may sign in can fill it: of a session, and
// of all sessions of a key. The oldest is forgotten; the newest is kept, however large. Other keys notice nothing: they
// have budgets of their own.
const (
	maxSessionBytes = 4 << 20
	maxKeyBytes     = 16 << 20
	// maxDrafts and maxFrames bound the unsaved changes and the previews of a session: there may be one in each of several
	// tabs.
	maxDrafts = 8
	maxFrames = 8
)

// A kept is something that a session keeps: a *draft or a *frame.
type kept struct {
	id    string
	bytes int
	order uint64 // of all that sessions keep, the lower the older
	what  any
}

// A frame is a mail that a frame of a page shows: what was typed, or a mail that was kept instead of being sent. It is
// rendered when the browser asks for it.
type frame struct {
	project int64
	parts   *client.Parts // nil: the mail with the log's entry
	entry   int64
}

func (f *frame) bytes() (n int) {
	if f.parts == nil {
		return 0
	}
	n = len(f.parts.SubjectTemplate) + len(f.parts.BodyHTML) + len(f.parts.BodyText)
	for name, value := range f.parts.Variables {
		n += len(name) + len(value)
	}
	return n
}

// keepForm keeps a draft or frame in a session, under an id that nobody can guess, or under its former one.
func (x *sessions) keepForm(s *session, id string, bytes int, what any) string {
	if id == "" {
		id = random()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.orders++
	s.mu.Lock()
	key := s.key.ID
	s.kept = append(s.kept, kept{id, bytes, x.orders, what})
	if most, same := mostOf(what), s.keptLike(what); len(same) > most {
		s.forget(same[0])
	}
	for len(s.kept) > 1 && s.keptBytes() > maxSessionBytes {
		s.forget(s.kept[0].id)
	}
	s.mu.Unlock()
	for x.forgetOldest(key, id) {
	}
	return id
}

// forgetOldest forgets the oldest thing but one that the sessions of a key keep, if they keep too much. The caller holds
// mu.
func (x *sessions) forgetOldest(key, but string) bool {
	var oldest *session
	var order uint64
	bytes := 0
	for _, s := range x.all {
		s.mu.Lock()
		if s.key.ID == key {
			bytes += s.keptBytes()
			if len(s.kept) > 0 && s.kept[0].id != but && (oldest == nil || s.kept[0].order < order) {
				oldest, order = s, s.kept[0].order
			}
		}
		s.mu.Unlock()
	}
	if oldest == nil || bytes <= maxKeyBytes {
		return false
	}
	oldest.mu.Lock()
	defer oldest.mu.Unlock()
	if len(oldest.kept) > 0 && oldest.kept[0].order == order { // otherwise it was used meanwhile
		oldest.kept = slices.Delete(oldest.kept, 0, 1)
	}
	return true
}

func mostOf(what any) int {
	if _, is := what.(*draft); is {
		return maxDrafts
	}
	return maxFrames
}

// keptLike lists the ids of what is kept of the kind of what, the oldest first. The caller holds mu, as with all below.
func (s *session) keptLike(what any) (ids []string) {
	_, drafts := what.(*draft)
	for _, k := range s.kept {
		if _, is := k.what.(*draft); is == drafts {
			ids = append(ids, k.id)
		}
	}
	return ids
}

func (s *session) keptBytes() (n int) {
	for _, k := range s.kept {
		n += k.bytes
	}
	return n
}

func (s *session) forget(id string) {
	s.kept = slices.DeleteFunc(s.kept, func(k kept) bool { return k.id == id })
}

// keptAs returns what a session keeps under an id, nil if there is nothing of this kind.
func keptAs[T any](s *session, id string) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if what, is := k.what.(*T); is && k.id == id {
			return what
		}
	}
	return nil
}

// keepParts keeps what was typed for a frame, in memory of its own: the texts of a form share that of the request.
func (c *Console) keepParts(s *session, project int64, parts *client.Parts) string {
	if parts.BodyHTML == "" {
		return ""
	}
	own := &client.Parts{SubjectTemplate: strings.Clone(parts.SubjectTemplate), BodyHTML: strings.Clone(parts.BodyHTML),
		BodyText: strings.Clone(parts.BodyText), Variables: map[string]string{}}
	for name, value := range parts.Variables {
		own.Variables[strings.Clone(name)] = strings.Clone(value)
	}
	f := &frame{project: project, parts: own}
	return c.sessions.keepForm(s, "", f.bytes(), f)
}
