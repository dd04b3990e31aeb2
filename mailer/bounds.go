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

// waiting counts the mails that are accepted and have not reached their end. A mail is counted before it is stored, so
// that concurrent sends cannot exceed the bounds.
type waiting struct {
	mu        sync.Mutex // guards what follows
	all       int
	byProject map[int64]int
	lowDisk   string // why no mail is accepted, "" if there is room
}

func (w *waiting) add(project int64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all += n
	if w.byProject[project] += n; w.byProject[project] == 0 {
		delete(w.byProject, project)
	}
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

// take charges n bytes and returns true, if they are free.
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

// keepMessage charges a send's message to the memory budgets and reports whether it fits; dropMessage releases it.
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
