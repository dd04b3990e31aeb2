package configsrc

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

// A writer makes writes on a base. It reads the files of the workspace, finds and judges names in the table of the base,
// and submits the result.
type writer struct {
	*base
	ws     workspace
	locks  fileLocks
	recent *decodedFiles // nil: none are kept
	// submit judges an update, and makes it or refuses it. id is that of the write in the Journal, 0 for none.
	submit func(ctx context.Context, u *update) (id int64, err error)
}

// A workspace is where the files of a base are, and where writes put them.
type workspace interface {
	// patient runs a write when nobody else is at work on the files, and refuses it if nothing can be written now.
	runPatiently(ctx context.Context, write func(context.Context) error) error
	openFiles() (contents, error)
	// swap reads a file that will be replaced, and returns the swap, which lacks the new content, with the present content
	// and its stamp.
	openSwap(t contents, path string) (*fileSwap, []byte, error)
	// create is swap for a new file; fs.ErrExist if something has its name.
	createSwap(path string) (*fileSwap, error)
	// noteDomains makes the notes of a write, durably, and forgetNotes undoes that.
	noteDomains(n *domainNotes) error
	forgetDomains(n *domainNotes)
	// makeFolder makes a folder for new files, if there is none, and dropFolder removes it if it is empty.
	makeFolder(name string) error
	dropFolder(name string)
	// isLink reports whether a config file is a link, which a person has made and which stays.
	isLink(path string) bool
}

// An attempt is an edit in progress, up to the update that it submits.
type attempt struct {
	*writer
	edit    *catalog.Edit
	target  target
	also    []string // further files to lock: lists that name the project
	outcome Outcome

	tree    contents
	path    string          // of the file that is edited
	file    *fileSwap       // its replacement
	was     *judge.Content  // its present content; empty for a new file
	decoded *hclfile.Result // of was; nil for a new file
	proven  *decodedFile    // the new content, for the next write
	folder  string          // was made for a new file; it goes again if nothing has come into it
	update  *update
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

// run makes the steps of writer.Write, once.
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
	if err != nil || len(w.update.files) == 0 {
		return err
	}
	if !w.edit.DryRun {
		if err := w.ws.noteDomains(&w.update.notes); err != nil {
			return err
		}
	}
	id, err := w.submit(ctx, w.update) // judge, place, publish
	if err != nil {
		w.ws.forgetDomains(&w.update.notes)
	}
	if err != nil || w.edit.DryRun {
		return err
	}
	if t := w.edit.Takes; t != nil {
		w.ws.forgetDomains(&domainNotes{project: t.From, is: map[string]string{t.Domain: ""}})
	}
	w.outcome.ID = id
	w.recent.put(w.update.c, w.proven)
	for _, f := range w.update.files {
		w.outcome.Paths = append(w.outcome.Paths, f.path)
	}
	return nil
}

// lockFiles locks the file, and those that change with it, and opens the config folder.
func (w *attempt) lockFiles() (unlock func(), err error) {
	if w.path, err = w.target.find(w); err != nil {
		return nil, err
	}
	unlock = w.locks.lock(append(slices.Clone(w.also), w.path)...)
	if w.tree, err = w.ws.openFiles(); err != nil {
		unlock()
		return nil, writeFault("edit "+w.path, err)
	}
	return unlock, nil
}

func (w *attempt) close() {
	w.tree.Close()
	if w.folder != "" {
		w.ws.dropFolder(w.folder)
		w.folder = ""
	}
}

// change makes the new content, proves it, and fills in the update, without files if nothing changes.
func (w *attempt) change() error {
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
func (w *attempt) prove(b []byte) (*judge.Candidate, error) {
	c := &judge.Candidate{Path: w.path, Content: judge.Content{Bytes: b}, Stamp: w.file.stamp}
	texts := map[string][]byte{}
	for _, f := range w.update.files {
		if f.c == nil {
			texts[f.Name] = f.Content
		}
	}
	rules := w.rules()
	w.proven = &decodedFile{day: rules.Today}
	w.proven.result = c.Decode(w.display(w.path), changedContents{w.tree, texts}, rules)
	if c.Fault != nil {
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
func (w *attempt) openFile(path string) (f *fileSwap, was *judge.Content, decoded *hclfile.Result, err error) {
	f, src, err := w.ws.openSwap(w.tree, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if d := w.recent.take(path, f.Old, w.rules().Today); d != nil {
		return f, d.content, d.result, nil
	}
	was = &judge.Content{Bytes: src}
	decoded = was.Decode(w.display(path), w.tree, w.rules())
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
	w.known.RLock()
	defer w.known.RUnlock()
	if bad := w.quarantine[path]; bad != nil {
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
