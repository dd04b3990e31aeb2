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

// conditionalTarget asks the same server by a schedule, with the ETags of all answers.
func (b *bench) conditionalTarget(ctx context.Context, of target, schedule []uint32) (target, error) {
	t := &tagged{scheduled: scheduled{corpus: of.corpus, schedule: scattered(of.corpus.Domains, 0)},
		etags: make([][]byte, of.corpus.Domains)}
	of.asker = t
	if err := b.warm(ctx, of, of.corpus.Domains); err != nil {
		return target{}, fmt.Errorf("read the ETags: %w", err)
	}
	u := &conditional{scheduled: scheduled{corpus: of.corpus, schedule: schedule}, etags: t.etags,
		httpResolve: httpResolve{tail: requestTail(of.server.addr, of.corpus.key)}}
	of.asker, of.protocol = u, u
	return of, nil
}
