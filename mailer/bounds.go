package mailer

import (
	"fmt"
	"sync"

	"fingerpost/resolver/catalog"
)

// The default bounds of the queue.
const (
	DefaultQueue           = 100_000
	DefaultQueuePerProject = 10_000
)

// Bounds on the bytes of messages in memory. A mail beyond them is queued, and read from the ledger when its turn
// comes. Without these bounds each dead server would hold 80 messages of 1 MiB.
const (
	maxSendBytes    = 32 << 20         // of sends within a request, until their attempts end
	maxProjectBytes = maxSendBytes / 4 // the part of it that one project may use
	maxRetryBytes   = 32 << 20         // of queued mail
	// maxMessageBytes is charged for a message before it is read: quoted-printable makes up to 3.1 MiB of the 1 MiB that a
	// mail may have.
	maxMessageBytes = 4 << 20
)

// waiting counts the mails that are accepted and have not reached their end, and the bytes of the messages that sends
// keep in memory. A mail is counted before it is stored, so that concurrent sends cannot exceed the bounds.
type waiting struct {
	mu        sync.Mutex // guards what follows
	all       load
	byProject map[int64]load
	lowDisk   string // why no mail is accepted, "" if there is room
}

// add changes the counts of a project.
func (w *waiting) add(project int64, mails, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change(project, mails, bytes)
}

// change is add for a caller that holds mu.
func (w *waiting) change(project int64, mails, bytes int) {
	w.all.add(mails, bytes)
	of := w.byProject[project]
	of.add(mails, bytes)
	if w.byProject[project] = of; of == (load{}) {
		delete(w.byProject, project)
	}
}

// reserve counts the bytes of a message that a send keeps in memory. It returns false if the bounds do not allow it.
func (w *waiting) reserve(project int64, size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all.bytes+size > maxSendBytes || w.byProject[project].bytes+size > maxProjectBytes {
		return false
	}
	w.change(project, 0, size)
	return true
}

// admit counts one more mail, or returns why there is no room for it.
func (m *Mailer) admit(project int64) error {
	full := func(format string, args ...any) error {
		return &catalog.Error{Code: catalog.CodeRateLimited, Message: fmt.Sprintf(format, args...)}
	}
	low := ""
	if m.options.LowDisk != nil {
		low = m.options.LowDisk()
	}
	w := &m.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if (low == "") != (w.lowDisk == "") {
		if low != "" {
			m.options.Logger.Warn("too little room on the disk that mail is stored on: sends are refused, queued mail goes on",
				"room", low)
		} else {
			m.options.Logger.Info("the disk that mail is stored on has room again: sends go on")
		}
	}
	w.lowDisk = low
	switch {
	case low != "":
		return full("too little room on the disk that mail is stored on; try again later")
	case w.all.mails >= m.options.Queue:
		return full("the mail queue is full; try again later")
	case w.byProject[project].mails >= m.options.QueuePerProject:
		return full("%d mails of this project wait for its SMTP server, more are not queued (--mail-queue-per-project); "+
			"try again later", w.byProject[project].mails)
	}
	w.change(project, 1, 0)
	return nil
}
