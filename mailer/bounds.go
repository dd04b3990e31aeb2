package mailer

import (
	"fmt"
	"sync"

	"fingerpost/resolver/catalog"
)

// Bounds on the mails that wait (mailer/README.md).
const (
	DefaultQueue           = 100_000
	DefaultQueuePerProject = 10_000
)

// Bounds on the bytes of messages that are in memory at a time. A mail for which there is no room is queued, and read back from
// the ledger when its turn comes. Without them one dead server holds 80 messages of a project's, of 1 MiB each, and so does
// every further one.
const (
	maxSendBytes    = 32 << 20         // with sends that somebody waits for, and their attempts
	maxProjectBytes = maxSendBytes / 4 // of those, of one project
	maxRetryBytes   = 32 << 20         // with mail that waited
	// maxMessageBytes is what a message is taken to have before it was read: quoted-printable makes up to 3.1 MiB of the 1 MiB
	// that a mail may have.
	maxMessageBytes = 4 << 20
)

// waiting counts the mails that are accepted and have not reached their end. A mail counts from before it is stored, so that
// concurrent sends cannot pass the bounds.
type waiting struct {
	mu        sync.Mutex // guards what follows
	all       int
	byProject map[int64]int
	lowDisk   string // why no mail is accepted, "" where there is room
}

func (w *waiting) add(project int64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all += n
	if w.byProject[project] += n; w.byProject[project] == 0 {
		delete(w.byProject, project)
	}
}

// admit counts one mail more, or says why there is no room for it.
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
			m.log.Warn("too little room on the disk that mail is stored on: sends are refused, queued mail goes on", "room", low)
		} else {
			m.log.Info("the disk that mail is stored on has room again: sends go on")
		}
	}
	w.lowDisk = low
	switch {
	case low != "":
		return full("too little room on the disk that mail is stored on; try again later")
	case w.all >= m.options.Queue:
		return full("the mail queue is full; try again later")
	case w.byProject[project] >= m.options.QueuePerProject:
		return full("%d mails of this project wait for its SMTP server, more are not queued (--mail-queue-per-project); try again later", w.byProject[project])
	}
	w.all++
	w.byProject[project]++
	return nil
}

// A budget bounds the bytes of messages in memory.
type budget struct {
	mu    sync.Mutex // guards taken
	taken int
}

// take reports whether n bytes were free, and takes them.
func (g *budget) take(n, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken+n > most {
		return false
	}
	g.taken += n
	return true
}

func (g *budget) give(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken -= n
}

// keepMessage reports whether the message of a send may stay in memory; dropMessage ends that.
func (b *outbox) keepMessage(size int) bool {
	if !b.messages.take(size, maxProjectBytes) {
		return false
	}
	if !b.m.messages.take(size, maxSendBytes) {
		b.messages.give(size)
		return false
	}
	return true
}

func (b *outbox) dropMessage(size int) {
	b.messages.give(size)
	b.m.messages.give(size)
}
