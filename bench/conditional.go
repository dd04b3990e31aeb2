package main

import (
	"bytes"
	"context"
	"fmt"
)

// conditional asks known names like a client that has their answers and sends their ETags. Every answer must be a 304.
// It is both the asker and the protocol of one load, which alternates between choosing and sending a question.
type conditional struct {
	scheduled
	httpResolve
	etags [][]byte // by number of the name, including the quotes
	name  uint32   // the last one asked for
}

func (u *conditional) ask(q *question, dst []byte) []byte {
	dst = u.scheduled.ask(q, dst)
	u.name = q.name
	return dst
}

const ifNoneMatch = "If-None-Match: "

func (u *conditional) appendRequest(dst, domain []byte) []byte {
	dst = u.httpResolve.appendRequest(dst, domain)
	dst = append(dst[:len(dst)-len("\r\n")], ifNoneMatch...)
	return append(append(dst, u.etags[u.name]...), "\r\n\r\n"...)
}

func (u *conditional) judge(q *question, a answer) fault {
	switch {
	case a.status != 304:
		return faultStatus
	case len(a.body) > 0 || !bytes.Equal(etagOf(a.head), u.etags[q.name]):
		return faultContent
	}
	return faultNone
}

// tagged asks each name once and keeps the ETags.
type tagged struct {
	scheduled
	etags [][]byte
}

func (t *tagged) judge(q *question, a answer) fault {
	f := t.scheduled.judge(q, a)
	if f == faultNone {
		if t.etags[q.name] = bytes.Clone(etagOf(a.head)); t.etags[q.name] == nil {
			return faultContent
		}
	}
	return f
}

// etagOf returns the value of an answer's ETag, nil if it has none.
func etagOf(head []byte) []byte {
	_, rest, found := bytes.Cut(head, []byte("\r\nETag: "))
	if !found {
		return nil
	}
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return value
}

// conditionalSide is a side that asks the same server as another side, by a schedule, with the ETags of all answers.
func (b *bench) conditionalSide(ctx context.Context, of *side, schedule []uint32) (*side, error) {
	names := make([]uint32, of.corpus.Domains)
	for i := range names {
		names[i] = uint32(i)
	}
	t := &tagged{scheduled: scheduled{corpus: of.corpus, schedule: names}, etags: make([][]byte, len(names))}
	l := b.closed(of)
	l.asker, l.count = t, len(names)
	if _, err := b.exact(ctx, of, l); err != nil {
		return nil, fmt.Errorf("read the ETags: %w", err)
	}
	u := &conditional{scheduled: scheduled{corpus: of.corpus, schedule: schedule}, etags: t.etags,
		httpResolve: httpResolve{tail: requestTail(of.server.addr, of.corpus.key)}}
	same := *of.server // under another name, for the progress output
	same.name += " (304)"
	return &side{server: &same, corpus: of.corpus, asker: u, protocol: u}, nil
}
