package configsrc

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// An update is one write: the new content of a file, and of further files that change with it.
type update struct {
	c       *judge.Candidate // the new content, decoded; gone: the file is to be removed
	was     *judge.Content   // the replaced content; empty for a new file
	file    *fileSwap        // of the file
	stays   bool             // the file itself stays as it is: only others change
	files   []*fileSwap      // the files to be put in place, in this order: texts, key lists, the project's file last
	removes catalog.UUID     // the project to be removed, zero for none
	project int64            // id of the written project, zero for a new one
	moves   *slugMove        // nil: the project's slug stays
	loser   *loser           // of a domain, in the same file; nil: none
	bulk    bulkChange       // of several projects
	notes   domainNotes      // about the domains that come or go
	permit  func() error     // of a change of keys; nil: it changes no key
	edit    *catalog.Edit
	dry     *Preview // of a dry run, filled in once it is judged; nil: a write
}

// A submission is an update on its way into the files. submit stages it next to the files and passes it to the goroutine
// that looks. That goroutine puts a round of submissions in place, with one sync of each folder and one Apply for all
// of them.
type submission struct {
	*update
	changed   []*judge.Candidate   // the config files of the update, in path order
	had       map[judge.Claim]bool // claims of the replaced content
	domains   []string             // the domains that the replaced content does not declare
	undo      string               // of a running write to several files, see atomicfile.Note
	journaled *catalog.FileWrite   // in the Journal; nil: there is none
	published bool                 // the Journal knows that the write was made
	done      chan error
	span      *trace.Span // of the request; nil: it is not traced
}

// A fileSwap is new content for one file of an update.
type fileSwap struct {
	atomicfile.Swap
	path  string           // of the target, links resolved, slash-separated below the config folder
	c     *judge.Candidate // what a config file then declares; nil for text that a template takes by file()
	had   []byte           // the replaced content; nil for a new file
	stamp catalog.Stamp
}

// submit implements workspace: it stages an update, passes it to the goroutine that looks, and waits until it is committed
// or refused.
func (s *Source) submit(ctx context.Context, update *update) (id int64, err error) {
	u := newSubmission(update)
	u.span = trace.From(ctx)
	defer func() { // removes what was staged, or what put has replaced
		if u.undo != "" {
			_ = s.o.Disk.Remove(u.undo)
		}
		for _, f := range u.files {
			f.Discard()
		}
	}()
	noted := s.note(u)
	defer s.dropNote(u, noted)
	for _, f := range u.files {
		if err := f.Stage(); errors.Is(err, atomicfile.ErrLocked) {
			return 0, busy(err.Error())
		} else if err != nil {
			return 0, writeFault("write "+u.c.Path, err)
		}
		f.stamp = folder.StatOf(f.Info)
		f.stamp.Hash = sha256.Sum256(f.Content)
	}
	if err := <-noted; err != nil {
		return 0, err
	}
	select {
	case s.updates <- u:
		err = <-u.done // even if ctx is done: the update may be committed already, and only the result tells
	case <-ctx.Done():
		err = busy("the files are being reloaded")
	}
	if u.journaled != nil {
		id = u.journaled.ID
	}
	return id, err
}

// newSubmission fills in what is to be judged.
func newSubmission(of *update) *submission {
	u := &submission{update: of, had: setOf(of.was.Claims), changed: []*judge.Candidate{of.c}, done: make(chan error, 1)}
	for _, ref := range u.c.Refs {
		if ref.Kind == catalog.KindDomain && !u.had[judge.ClaimOf("domain", ref.Name)] {
			u.domains = append(u.domains, ref.Name)
		}
	}
	for _, f := range u.files {
		if f.c != nil && f.c != u.c {
			u.changed = append(u.changed, f.c)
		}
	}
	for _, c := range u.changed {
		if c.By == nil {
			c.By = &u.edit.By
		}
	}
	judge.SortByPath(u.changed)
	return u
}

func busy(why string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: why + "; try again in a moment"}
}

// maxUpdates bounds the updates of one round.
const maxUpdates = 256

// write commits the first update and all that are queued behind it.
func (s *Source) write(first *submission) {
	waiting := []*submission{first}
	for more := true; more && len(waiting) < maxUpdates; {
		select {
		case u := <-s.updates:
			waiting = append(waiting, u)
		default:
			more = false
		}
	}
	start := time.Now()
	if s.status.Held != nil {
		answer(waiting, busy("a reload is held back until someone confirms it (fingerpost reload --confirm)"))
		return
	}
	waiting = slices.DeleteFunc(waiting, func(u *submission) bool {
		switch {
		case u.dry == nil:
			return false
		case s.git.state().working():
			u.done <- errGitBusy
		default:
			u.done <- s.previewed(u)
		}
		return true
	})
	for len(waiting) > 0 {
		waiting = s.writeRound(waiting, start)
	}
}

// answer returns one result to several writers.
func answer(updates []*submission, err error) {
	for _, u := range updates {
		u.done <- err
	}
}

// writeRound commits the updates that do not depend on each other, from top to bottom, and returns the others.
func (s *Source) writeRound(updates []*submission, start time.Time) (later []*submission) {
	s.git.lock()
	defer s.git.unlock()
	git := s.git.state()
	if git.working() {
		answer(updates, errGitBusy)
		return nil
	}
	var round []*submission
	taken := map[judge.Claim]bool{}
	for _, u := range updates {
		if u.clashes(taken) {
			later = append(later, u)
			continue
		}
		if err := s.admit(u); err != nil {
			u.done <- err
			continue
		}
		round = append(round, u)
	}
	round = s.noteRound(round)
	endPlace := stepOf(round, "files.place")
	// ---- Up to here no file has changed. place exchanges the files or puts them back; what it returns is committed. ----
	round = s.place(round, git)
	endPlace()
	if len(round) == 0 {
		s.removalsDone()
		return later
	}
	endPublish := stepOf(round, "files.publish")
	found := &finding{recording: func() func() { return stepOf(round, "ledger.sync") }}
	for _, u := range round {
		found.candidates = append(found.candidates, u.changed...)
	}
	// An error is one answer for the round, which was one change: either all of it is undone, or nothing.
	err := s.commitPart(found, false)
	endPublish()
	if err != nil && s.lacks(found.candidates) {
		for _, u := range round {
			u.takeBack()
		}
		answer(round, err)
		s.removalsDone()
		return later
	}
	if err != nil { // the files are the truth: the next look makes the store follow
		err = errOutcome
	} else {
		s.removalsDone()
	}
	s.endNotes(round)
	for _, c := range found.candidates {
		delete(s.suspects, c.Path)
	}
	answer(round, err)
	if err == nil {
		s.report(start, "written")
	}
	return later
}

// errOutcome is the answer to a write that is in the files, and that the Sink may have taken although it has failed.
var errOutcome = &catalog.Error{Code: catalog.CodeOutcomeUnknown,
	Message: "the write is in the files, but the store has failed meanwhile, and nobody knows yet whether it is served; " +
		"it will be, once the store works again"}

// lacks reports whether the Sink, which has failed, has certainly taken nothing of a change.
func (s *Source) lacks(changed []*judge.Candidate) bool {
	for _, c := range changed {
		row, err := s.o.Sink.File(c.Path)
		switch {
		case catalog.IsNotFound(err):
			if c.Gone {
				return false
			}
		case err != nil, !c.Gone && row.Stamp.Hash == c.Stamp.Hash && slices.EqualFunc(row.Deps, c.Deps, sameContent):
			return false
		}
	}
	return true
}

func sameContent(a, b catalog.Dep) bool { return a.Path == b.Path && a.Stamp.Hash == b.Stamp.Hash }

// stepOf begins a step that a round of writes makes together, in the trace of each.
func stepOf(round []*submission, name string) (end func()) {
	var spans []*trace.Span
	for _, u := range round {
		if u.span != nil {
			spans = append(spans, u.span.Child(name))
		}
	}
	return func() {
		for _, span := range spans {
			span.End()
		}
	}
}

// clashes reports whether an earlier update of the round touches the same objects, or a domain above or below one that
// this update adds. Otherwise it adds the update's own claims to taken.
func (u *submission) clashes(taken map[judge.Claim]bool) bool {
	claims := slices.Clone(u.was.Claims)
	for _, c := range u.changed {
		claims = append(claims, c.Claims...)
	}
	if u.permit != nil { // it must see the keys as the update before has left them
		claims = append(claims, keysClaim)
	}
	clash := slices.ContainsFunc(claims, func(c judge.Claim) bool { return taken[c] })
	for _, name := range u.domains {
		suffix, wildcard := strings.CutPrefix(name, "*.")
		clash = clash || wildcard && taken[aboveClaim(suffix)]
		for wildcard := range names.Above(name) {
			clash = clash || taken[judge.ClaimOf("domain", wildcard)]
			claims = append(claims, aboveClaim(wildcard[len("*."):]))
		}
	}
	if !clash {
		for _, c := range claims {
			taken[c] = true
		}
	}
	return clash
}

// keysClaim is the claim to change keys.
var keysClaim = judge.ClaimOf("keys", "")

// aboveClaim is the claim to all names below a suffix.
func aboveClaim(suffix string) judge.Claim { return judge.ClaimOf("below", suffix) }

// admit judges an update as a look would judge the files.
func (s *base) admit(u *submission) error {
	if u.moves != nil && !s.complete(u) {
		return atomicfile.ErrChanged
	}
	if u.permit != nil {
		if err := u.permit(); err != nil {
			return err
		}
	}
	if err := s.judged(u); err != nil {
		return err
	}
	// A key that is limited to projects may not declare every domain. No other update is committed before this one, so the
	// result stays valid.
	if u.edit.Covers != nil {
		for _, name := range u.domains {
			if err := names.MayClaim(s.facts, u.edit.Covers, u.project, name); err != nil {
				return err
			}
		}
		if !u.settled(s.o.Sink.Defaults()) {
			return atomicfile.ErrChanged
		}
	}
	return nil
}

// settled reports whether the proofs of the domains follow from these defaults: they may have changed since the edit was
// made from others.
func (u *submission) settled(defaults *catalog.Defaults) bool {
	if u.was.Declared == nil || u.c == nil || u.c.Declared == nil {
		return true
	}
	byID := func(d *catalog.Declared) *catalog.ProjectConfig {
		i := slices.IndexFunc(d.Projects, func(p catalog.ProjectConfig) bool { return p.Project.ID == u.project })
		if i < 0 {
			return &catalog.ProjectConfig{}
		}
		return &d.Projects[i]
	}
	is := byID(u.c.Declared).Domains
	if t := u.edit.Takes; t != nil { // which is proven
		is = slices.DeleteFunc(slices.Clone(is), func(d catalog.Domain) bool { return d.Name == t.Domain })
	}
	return names.MayProveAll(byID(u.was.Declared).Domains, is, defaults) == nil
}

// judged judges an update against the other files.
func (s *base) judged(u *submission) error {
	s.known.RLock()
	defer s.known.RUnlock()
	for _, c := range u.changed {
		c.Prev = s.table.File(c.Path)
	}
	j := &judge.Case{
		Table: s.table, Candidates: u.changed, Require: s.sealed,
		Row:     s.facts.File,
		Display: func(path string) string { return path }, // the message goes to the client
		Locate:  s.lastDecoded, Meant: func(project catalog.UUID) bool { return project == u.removes },
	}
	j.Run()
	if refused := slices.IndexFunc(u.changed, func(c *judge.Candidate) bool { return c.Rejected }); refused >= 0 {
		return s.refusal(u, j, u.changed[refused])
	}
	return nil
}

func (s *base) locate(path string) (*hclfile.Result, error) {
	t, err := s.ws.open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return locate(t, s.display(path), path)
}

// place exchanges the files of a round, syncs their folders, and returns the updates that are durable in place. If git
// has started meanwhile, it takes all of them back: git may have read the old files and be about to write over the new
// ones.
func (s *Source) place(round []*submission, before gitState) []*submission {
	errs := make([]error, len(round))
	sideBySide(len(round), func(i int) { errs[i] = s.put(round[i]) })
	placed := round[:0]
	var folders []string
	for i, u := range round {
		if errs[i] != nil {
			u.done <- errs[i]
			continue
		}
		placed = append(placed, u)
		for _, f := range u.files {
			if dir := filepath.Dir(f.Target); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	if s.git.moved(before) {
		for _, u := range placed {
			u.takeBack()
		}
		answer(placed, errGitBusy)
		return nil
	}
	errs = make([]error, len(folders))
	sideBySide(len(folders), func(i int) { errs[i] = atomicfile.SyncFolder(s.o.Disk, folders[i]) })
	durable := placed[:0]
	for _, u := range placed {
		var err error
		for _, f := range u.files {
			err = errors.Join(err, errs[slices.Index(folders, filepath.Dir(f.Target))])
		}
		if err != nil {
			u.takeBack()
			u.done <- writeFault("write "+u.c.Path, err)
			continue
		}
		durable = append(durable, u)
	}
	return durable
}

// put exchanges all files of an update, the project's file last. If one of them cannot be exchanged, the others are put
// back. If there are several, a note that is durable before the first exchange lets the next look finish the way back
// after a crash (atomicfile.Note).
func (s *Source) put(u *submission) (err error) {
	defer func() {
		if err != nil {
			u.takeBack()
		}
	}()
	d, last := s.o.Disk, len(u.files)-1
	swaps := make([]*atomicfile.Swap, len(u.files))
	for i, f := range u.files {
		swaps[i] = &f.Swap
	}
	if last > 0 {
		if u.undo, err = atomicfile.Note(d, swaps); err != nil {
			return writeFault("write "+u.c.Path, err)
		}
	}
	for i, f := range u.files {
		if i == last && last > 0 { // the others must be durable before the last, which decides
			if err = atomicfile.SyncFolders(d, swaps[:last]); err != nil {
				return writeFault("write "+u.c.Path, err)
			}
		}
		if err = f.Put(); err != nil {
			if fault, is := errors.AsType[*atomicfile.Fault](err); is {
				return writeFault(fault.Step, fault.Err)
			}
			return err
		}
		f.stamp = folder.Renamed(f.stamp, f.Target)
		if f.c != nil {
			f.c.Stamp = f.stamp
			continue
		}
		for i := range u.c.Deps {
			if u.c.Deps[i].Path == f.Name {
				u.c.Deps[i].Stamp = f.stamp
			}
		}
	}
	if u.stays {
		if now, rerr := d.ReadFile(u.file.Target); rerr != nil || sha256.Sum256(now) != u.file.Old {
			return atomicfile.ErrChanged
		}
	}
	return nil
}

// takeBack undoes put: the last file first, durably, because after a crash it decides over the others.
func (u *submission) takeBack() {
	for i, f := range slices.Backward(u.files) {
		f.TakeBack()
		if i > 0 && i == len(u.files)-1 {
			_ = atomicfile.SyncFolder(f.Folder.Disk, filepath.Dir(f.Target)) // was not acknowledged
		}
	}
}

// sideBySide runs f(0) … f(n-1) concurrently, because they mostly wait for the disk.
func sideBySide(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { f(i) })
	}
	if n > 0 {
		f(0)
	}
	wg.Wait()
}
