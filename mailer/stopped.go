package mailer

import (
	"cmp"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// A Stopped is a project whose mail is not tried until something changes in the files.
type Stopped struct {
	ProjectID int64
	Code      catalog.Code // SMTP_… if an attempt has shown that the config does not work; else why there is none to try
	Since     time.Time
	Waiting   int // mails
}

// Stopped lists the projects whose mail has stopped, by id.
func (m *Mailer) Stopped() (all []Stopped) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.outboxes {
		b.mu.Lock()
		if b.hold != nil {
			all = append(all, Stopped{b.project, b.hold.code, b.hold.since, b.later.Len() + b.ready.Len()})
		}
		b.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Stopped) int { return cmp.Compare(a.ProjectID, b.ProjectID) })
	return all
}
