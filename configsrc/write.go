package configsrc

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// An Outcome is what has become of an edit.
type Outcome struct {
	Preview *Preview // of a dry run; nil: the edit was made
	ID      int64    // of the write in the Journal; 0: there is no Journal, or nothing has changed
	// the files that were changed, created or removed, slash-separated below the config folder, links resolved
	Paths []string
}

// Write makes an edit of what the files declare (configsrc/atomicfile/README.md, What a write leaves), in seven steps:
//
//	lock     the files; writes to one file come one after the other
//	read     the file as it is on disk now
//	change   the project or key in it, as bytes
//	prove    that the bytes decode to the intended change and nothing else
//	judge    the result against all other files; a dry run ends here
//	place    the files, durably, or put all of them back
//	publish  the change to the Sink, the Journal and the caller
//
// The first four run side by side for different files, on the callers' goroutines, and are in this file. The other
// three run on the goroutine that looks, for a round of waiting writes together, and are in round.go.
//
// When Write returns nil, the change is in its file, file and folder are synced, and the Sink serves it.
// OUTCOME_UNKNOWN means that it is in its file, and that the Sink has failed. Any other error means that nothing was
// changed; errors for the client are *catalog.Error, others are internal or system faults. Run must be running. It may
// be called from any goroutine. A write that lost against a save at the same time is repeated once; one that turns out
// to need more files starts again with locks on all of them.
func (s *base) Write(ctx context.Context, e *catalog.Edit) (Outcome, error) {
	w := &write{base: s, edit: e}
	for lost, grown := 0, 0; ; {
		err := s.ws.patient(ctx, w.attempt)
		switch {
		case errors.Is(err, errMoreFiles):
			if grown++; grown == 3 {
				return Outcome{}, busy("the files with keys keep changing")
			}
		case errors.Is(err, atomicfile.ErrChanged), errors.Is(err, fs.ErrExist): // a new file's name was taken meanwhile
			if lost++; lost == 2 {
				return Outcome{}, &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
			}
		case err != nil:
			return Outcome{}, err
		default:
			return w.outcome, nil
		}
	}
}

// errMoreFiles ends an attempt that needs locks on more files, which are in write.also by then.
var errMoreFiles = errors.New("the write changes more files than it has locked")

// A write is an edit in progress, up to the staged update.
type write struct {
	*base
	edit    *catalog.Edit
	also    []string // further files to lock: key lists that name the project
	outcome Outcome

	// The fields below belong to one attempt.
	target  target
	tree    contents
	path    string          // of the file that is edited
	file    *fileSwap       // its replacement
	was     *judge.Content  // its present content; empty for a new file
	decoded *hclfile.Result // of was; nil for a new file
	folder  string          // was made for a new file; it goes again if nothing has come into it
	update  *update
}

// A target is what an edit changes: a new project, a project, or a key.
type target interface {
	// find names the file to be locked.
	find(w *write) (path string, err error)
	// read reads the file, which may be a new one.
	read(w *write) error
	// change returns the new content of the file. Other files that change with it are added to the update.
	change(w *write) (content []byte, err error)
	// prove returns an error if the decoded result is not the present content with the intended change and no other.
	prove(w *write, result *judge.Candidate) error
}

// attempt makes all steps once.
func (w *write) attempt(ctx context.Context) error {
	w.target, w.outcome = w.newTarget(), Outcome{}
	if w.edit.DryRun {
		w.outcome.Preview = &Preview{Problems: hclfile.Diagnostics{}}
	}
	_, span := trace.Start(ctx, "files.lock")
	unlock, err := w.lock()
	span.EndWith(err)
	if err != nil {
		return err
	}
	defer unlock()
	defer w.close()
	_, span = trace.Start(ctx, "files.prove")
	if err = w.target.read(w); err == nil {
		err = w.change()
	}
	span.EndWith(err)
	if err != nil || len(w.update.files) == 0 {
		return err
	}
	if !w.edit.DryRun {
		if err := w.ws.noteDomains(&w.update.notes); err != nil {
			return err
		}
	}
	id, err := w.ws.submit(ctx, w.update) // judge, place, publish
	if err != nil {
		w.ws.forgetNotes(&w.update.notes)
	}
	if err != nil || w.edit.DryRun {
		return err
	}
	if t := w.edit.Takes; t != nil {
		w.ws.forgetNotes(&domainNotes{project: t.From, is: map[string]string{t.Domain: ""}})
	}
	w.outcome.ID = id
	for _, f := range w.update.files {
		w.outcome.Paths = append(w.outcome.Paths, f.path)
	}
	return nil
}

func (w *write) newTarget() target {
	switch e := w.edit; {
	case e.NewProject != nil:
		return &newProject{e.NewProject}
	case e.Project != nil:
		return &projectTarget{edit: e.Project}
	case e.Projects != nil:
		return &bulkTarget{edits: e.Projects}
	default:
		return &keyTarget{edit: e.Key}
	}
}

// lock locks the file, and those that change with it, and opens the config folder.
func (w *write) lock() (unlock func(), err error) {
	if w.path, err = w.target.find(w); err != nil {
		return nil, err
	}
	unlock = w.writers.lock(append(slices.Clone(w.also), w.path)...)
	if w.tree, err = w.ws.open(); err != nil {
		unlock()
		return nil, writeFault("edit "+w.path, err)
	}
	return unlock, nil
}

func (w *write) close() {
	w.tree.Close()
	if w.folder != "" {
		w.ws.dropFolder(w.folder)
		w.folder = ""
	}
}

// change makes the new content, proves it, and fills in the update, without files if nothing changes.
func (w *write) change() error {
	u := &update{edit: w.edit, file: w.file, was: w.was, dry: w.outcome.Preview}
	w.update = u
	content, err := w.target.change(w)
	if err != nil {
		return err
	}
	u.stays = bytes.Equal(content, w.was.Bytes)
	if u.stays && len(u.files) == 0 {
		return nil
	}
	if u.c, err = w.prove(content); err != nil {
		return err
	}
	w.file.c, w.file.Content = u.c, u.c.Bytes
	if !u.stays {
		u.files = append(u.files, w.file)
	}
	return nil
}

// prove decodes the new content as a look does, and compares it with what the edit means. A file that declares nothing
// any more is removed, unless it is a link: that is a person's, and its target stays, with its comments.
func (w *write) prove(b []byte) (*judge.Candidate, error) {
	c := &judge.Candidate{Path: w.path, Content: judge.Content{Bytes: b}, Stamp: w.file.stamp}
	texts := map[string][]byte{}
	for _, f := range w.update.files {
		if f.c == nil {
			texts[f.Name] = f.Content
		}
	}
	if c.Decode(w.display(w.path), changedContents{w.tree, texts}, w.today()); c.Fault != nil {
		return nil, namedFault(c.Fault)
	}
	if err := w.target.prove(w, c); err != nil {
		return nil, err
	}
	if len(c.Refs) == 0 && !w.ws.isLink(w.path) {
		c = &judge.Candidate{Path: w.path, Gone: true}
		w.file.Removes, w.file.Like = true, nil
	}
	return c, nil
}

// openFile reads and decodes a config file that will be replaced.
func (w *write) openFile(path string) (f *fileSwap, was *judge.Content, decoded *hclfile.Result, err error) {
	f, src, err := w.ws.swap(w.tree, path)
	if err != nil {
		return nil, nil, nil, err
	}
	was = &judge.Content{Bytes: src}
	decoded = was.Decode(w.display(path), w.tree, w.today())
	switch {
	case was.Fault != nil:
		return nil, nil, nil, namedFault(was.Fault)
	case was.Declared == nil:
		return nil, nil, nil, w.invalidFile(was.Diags, w.edit.Covers)
	}
	return f, was, decoded, nil
}
