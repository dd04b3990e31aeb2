package edits

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// A Writer makes writes on a Base. It reads the files of a Workspace, finds names in the table of the Base, and submits
// the result.
type Writer struct {
	*Base
	ws     Workspace
	locks  fileLocks
	recent *decodedFiles // nil: none are kept
	submit Submit
}

// Submit judges an Update (Base.Admit, Base.Describe), and makes it or refuses it. id is that of the write in the
// Journal, 0 for none.
type Submit func(ctx context.Context, u *Update) (id int64, err error)

// NewWriter returns a Writer that keeps the decoded forms of the files that it has written last.
func NewWriter(b *Base, ws Workspace, submit Submit) *Writer {
	return &Writer{Base: b, ws: ws, submit: submit, recent: new(decodedFiles)}
}

// A Workspace is where the files of a Base are, and where writes put them.
type Workspace interface {
	// RunPatiently runs a write when nobody else is at work on the files, and refuses it if nothing can be written now.
	RunPatiently(ctx context.Context, write func(context.Context) error) error
	OpenFiles() (Contents, error)
	// OpenSwap reads a file that will be replaced, and returns the swap, which lacks the new content, with the present
	// content and its stamp.
	OpenSwap(t Contents, path string) (*Swap, []byte, error)
	// CreateSwap is OpenSwap for a new file; fs.ErrExist if something has its name.
	CreateSwap(path string) (*Swap, error)
	// NoteDomains makes the notes of a write, durably, and ForgetDomains undoes that.
	NoteDomains(n *DomainNotes) error
	ForgetDomains(n *DomainNotes)
	// MakeFolder makes a folder for new files, if there is none, and DropFolder removes it if it is empty.
	MakeFolder(name string) error
	DropFolder(name string)
	// IsLink reports whether a config file is a link, which a person has made and which stays.
	IsLink(path string) bool
}

// An attempt is an edit in progress, up to the update that it submits.
type attempt struct {
	*Writer
	edit    *catalog.Edit
	target  target
	also    []string // further files to lock: lists that name the project
	outcome Outcome

	tree    Contents
	path    string          // of the file that is edited
	file    *Swap           // its replacement
	was     *judge.Content  // its present content; empty for a new file
	decoded *hclfile.Result // of was; nil for a new file
	proven  *decodedFile    // the new content, for the next write
	folder  string          // was made for a new file; it goes again if nothing has come into it
	update  *Update
}

// A target is what an edit changes: a new project, a project, a key or a webhook.
type target interface {
	// find names the file to be locked.
	find(w *attempt) (path string, err error)
	// read reads the file, which may be a new one.
	read(w *attempt) error
	// change returns the new content of the file. Other files that change with it are added to the update.
	change(w *attempt) (content []byte, err error)
	// prove returns an error if the decoded result is not the present content with the intended change and no other.
	prove(w *attempt, result *judge.Candidate) error
}

// errMoreFiles ends an attempt that needs locks on more files, which are in attempt.also by then.
var errMoreFiles = errors.New("the write changes more files than it has locked")

// run makes the steps of Writer.Write, once.
func (w *attempt) run(ctx context.Context) error {
	if w.edit.DryRun {
		w.outcome.Preview = &Preview{Problems: hclfile.Diagnostics{}}
	}
	_, span := trace.Start(ctx, "files.lock")
	unlock, err := w.lockFiles()
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
	if err != nil || len(w.update.Files) == 0 {
		return err
	}
	w.update.prepare()
	if !w.edit.DryRun {
		if err := w.ws.NoteDomains(&w.update.notes); err != nil {
			return err
		}
	}
	id, err := w.submit(ctx, w.update) // judge, place, publish
	if err != nil {
		w.ws.ForgetDomains(&w.update.notes)
	}
	if err != nil || w.edit.DryRun {
		return err
	}
	if t := w.edit.Takes; t != nil {
		w.ws.ForgetDomains(&DomainNotes{Project: t.From, Is: map[string]string{t.Domain: ""}})
	}
	w.outcome.ID = id
	w.recent.put(w.update.Is, w.proven)
	for _, f := range w.update.Files {
		w.outcome.Paths = append(w.outcome.Paths, f.Path)
	}
	return nil
}

// lockFiles locks the file, and those that change with it, and opens the config folder.
func (w *attempt) lockFiles() (unlock func(), err error) {
	if w.path, err = w.target.find(w); err != nil {
		return nil, err
	}
	unlock = w.locks.lock(append(slices.Clone(w.also), w.path)...)
	if w.tree, err = w.ws.OpenFiles(); err != nil {
		unlock()
		return nil, WriteFault("edit "+w.path, err)
	}
	return unlock, nil
}

func (w *attempt) close() {
	w.tree.Close()
	if w.folder != "" {
		w.ws.DropFolder(w.folder)
		w.folder = ""
	}
}

// change makes the new content, proves it, and fills in the update, without files if nothing changes.
func (w *attempt) change() error {
	u := &Update{edit: w.edit, File: w.file, Was: w.was, Preview: w.outcome.Preview}
	w.update = u
	content, err := w.target.change(w)
	if err != nil {
		return err
	}
	u.Stays = bytes.Equal(content, w.was.Bytes)
	if u.Stays && len(u.Files) == 0 {
		return nil
	}
	if u.Is, err = w.prove(content); err != nil {
		return err
	}
	w.file.Config, w.file.Content = u.Is, u.Is.Bytes
	if !u.Stays {
		u.Files = append(u.Files, w.file)
	}
	return nil
}

// prove decodes the new content as a look does, and compares it with what the edit means. A file that declares nothing
// any more is removed, unless it is a link: that is a person's, and its target stays, with its comments.
func (w *attempt) prove(b []byte) (*judge.Candidate, error) {
	c := &judge.Candidate{Path: w.path, Content: judge.Content{Bytes: b}, Stamp: w.file.Stamp}
	texts := map[string][]byte{}
	for _, f := range w.update.Files {
		if f.Config == nil {
			texts[f.Name] = f.Content
		}
	}
	rules := w.Rules()
	w.proven = &decodedFile{day: rules.Today}
	w.proven.result = c.Decode(w.Display(w.path), changedContents{w.tree, texts}, rules)
	if c.Fault != nil {
		return nil, namedFault(c.Fault)
	}
	if err := w.target.prove(w, c); err != nil {
		return nil, err
	}
	if len(c.Refs) == 0 && !w.ws.IsLink(w.path) {
		c = &judge.Candidate{Path: w.path, Gone: true}
		w.file.Removes, w.file.Like = true, nil
	}
	return c, nil
}

// openFile reads and decodes a config file that will be replaced.
func (w *attempt) openFile(path string) (f *Swap, was *judge.Content, decoded *hclfile.Result, err error) {
	f, src, err := w.ws.OpenSwap(w.tree, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if d := w.recent.take(path, f.Old, w.Rules().Today); d != nil {
		return f, d.content, d.result, nil
	}
	was = &judge.Content{Bytes: src}
	decoded = was.Decode(w.Display(path), w.tree, w.Rules())
	switch {
	case was.Fault != nil:
		return nil, nil, nil, namedFault(was.Fault)
	case was.Declared == nil:
		return nil, nil, nil, w.invalidFile(was.Diags, w.edit.Covers)
	}
	return f, was, decoded, nil
}

// brokenFile returns why no file of this name can be created: a quarantined file has it.
func (w *attempt) brokenFile(path string) error {
	w.Known.RLock()
	defer w.Known.RUnlock()
	if bad := w.Quarantine[path]; bad != nil {
		return w.invalidFile(bad.Diags, w.edit.Covers)
	}
	return nil
}

// decodedWith reports whether the file at path had this hash when the config file was decoded.
func (w *attempt) decodedWith(path string, hash [32]byte) bool {
	for _, d := range w.was.Deps {
		if d.Path == path {
			return d.Stamp.Hash == hash
		}
	}
	return false
}
