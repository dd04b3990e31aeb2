package edits

import (
	"context"
	"errors"
	"io/fs"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// Write makes an edit of what the files declare (configsrc/atomicfile/README.md, What a write leaves), in seven steps:
//
//	lock     the files; writes to one file come one after the other
//	read     the file as it is on disk now
//	change   the project, key or webhook in it, as bytes
//	prove    that the bytes decode to the intended change and nothing else
//	judge    the result against all other files; a dry run ends here
//	place    the files, durably, or put all of them back
//	publish  the change to the Sink, the Journal and the caller
//
// The first four run side by side for different files, on the callers' goroutines, and are in attempt.go. The other
// three run where the Update is submitted, for a live folder in configsrc/round.go for a round of waiting writes
// together.
//
// When Write returns nil, the change is in its file, file and folder are synced, and the Sink serves it.
// OUTCOME_UNKNOWN means that it is in its file, and that the Sink has failed. Any other error means that nothing was
// changed; errors for the client are *catalog.Error, others are internal or system faults. Run must be running. It may
// be called from any goroutine. A write that lost against a save at the same time is repeated once; one that turns out
// to need more files starts again with locks on all of them.
func (w *Writer) Write(ctx context.Context, e *catalog.Edit) (Outcome, error) {
	var also []string // to be locked: files that an attempt has found to change too
	for lost, grown := 0, 0; ; {
		var a *attempt
		err := w.ws.RunPatiently(ctx, func(ctx context.Context) error {
			a = &attempt{Writer: w, edit: e, target: targetOf(e), also: also}
			return a.run(ctx)
		})
		switch {
		case errors.Is(err, errMoreFiles):
			also = a.also
			if grown++; grown == 3 {
				return Outcome{}, Busy("the files with lists of projects keep changing")
			}
		case errors.Is(err, atomicfile.ErrChanged), errors.Is(err, fs.ErrExist): // a new file's name was taken meanwhile
			if lost++; lost == 2 {
				return Outcome{}, &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
			}
		case err != nil:
			return Outcome{}, err
		default:
			return a.outcome, nil
		}
	}
}

func targetOf(e *catalog.Edit) target {
	switch {
	case e.NewProject != nil:
		return &newProject{e.NewProject}
	case e.Project != nil:
		return &projectTarget{edit: e.Project}
	case e.Projects != nil:
		return &bulkTarget{edits: e.Projects}
	case e.Webhook != nil:
		return &webhookTarget{edit: e.Webhook}
	default:
		return &keyTarget{edit: e.Key}
	}
}
