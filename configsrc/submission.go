package configsrc

import (
	"fingerpost/configsrc/edits"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// A submission is an update on its way into the files. submit stages it next to the files and passes it to the goroutine
// that looks. That goroutine puts a round of submissions in place, with one sync of each folder and one Apply for all
// of them.
type submission struct {
	*edits.Update
	undo      string             // of a running write to several files, see atomicfile.Note
	journaled *catalog.FileWrite // in the Journal; nil: there is none
	published bool               // the Journal knows that the write was made
	done      chan error
	span      *trace.Span // of the request; nil: it is not traced
}

// fileWrite describes a submission.
func (u *submission) fileWrite() *catalog.FileWrite {
	w := u.FileWrite()
	if u.span != nil {
		w.Trace = u.span.ID().Parent()
	}
	return w
}

// answer returns one result to several writers.
func answer(updates []*submission, err error) {
	for _, u := range updates {
		u.done <- err
	}
}
