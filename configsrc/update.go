package configsrc

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// An update is one write: the new content of a file, and of further files that change with it. The writer makes and
// stages it; submit passes it to the goroutine that looks. That goroutine puts a round of updates in place, with one
// sync of each folder and one Apply for all of them.
type update struct {
	c       *candidate      // the new content, decoded; gone: the file is to be removed
	had     map[claim]bool  // claims of the replaced content
	counted []claim         // the projects and domains among them
	file    atomicfile.Swap // of the file
	removes catalog.UUID    // the project to be removed, zero for none
	project int64           // id of the written project, zero for a new one
	bodies  []*bodySwap     // the files that change with it
	moves   *slugMove       // nil: the project's slug stays
	stays   bool            // only the further files change
	note    string          // of a running write to several files, see undo.go
	by      Author
	covers  Coverage
	done    chan error
}

// stage writes the new contents next to their files.
func (u *update) stage() (err error) {
	if err = u.stageBodies(); err == nil && !u.stays {
		err = u.file.Stage()
	}
	if err != nil {
		u.discard()
		if errors.Is(err, atomicfile.ErrLocked) {
			return busy(err.Error())
		}
		return writeFault("write "+u.c.path, err)
	}
	if !u.stays && !u.c.gone {
		u.c.stamp = stampOf(u.file.Info(), u.file.Content)
	}
	return nil
}

// discard removes what stage wrote, or what put replaced.
func (u *update) discard() {
	if u.note != "" {
		_ = u.file.Folder.Disk.Remove(u.note)
		u.note = ""
	}
	for _, b := range u.bodies {
		b.file.Discard()
	}
	u.file.Discard()
}

// submit passes an update to the goroutine that looks and waits until it is committed or refused.
func (s *Source) submit(ctx context.Context, u *update) error {
	u.by, _ = ctx.Value(authorKey{}).(Author)
	u.covers = coverageOf(ctx)
	select {
	case s.updates <- u:
		// The update may be committed already, even if ctx is done: only the result on done tells.
		err := <-u.done
		u.discard()
		return err
	case <-ctx.Done():
		u.discard()
		return busy("the files are being reloaded")
	}
}

func busy(why string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: why + "; try again in a moment"}
}

// maxUpdates bounds the updates of one round.
const maxUpdates = 256

// write commits the first update and all that are queued behind it.
func (s *Source) write(first *update) {
	waiting := []*update{first}
	for more := true; more && len(waiting) < maxUpdates; {
		select {
		case u := <-s.updates:
			waiting = append(waiting, u)
		default:
			more = false
		}
	}
	start := time.Now()
	switch {
	case s.heldNow():
		s.refuse(waiting, busy("a reload is held back until someone confirms it (fingerpost reload --confirm)"))
	default:
		for len(waiting) > 0 {
			waiting = s.writeRound(waiting, start)
		}
	}
}

func (s *Source) refuse(updates []*update, err error) {
	for _, u := range updates {
		u.end(err)
	}
}

// end returns the result to the writer.
func (u *update) end(err error) { u.done <- err }

// writeRound commits the updates that do not depend on each other, from top to bottom, and returns the others.
func (s *Source) writeRound(updates []*update, start time.Time) (later []*update) {
	git := s.gitNow()
	if git.working() {
		s.refuse(updates, errGitBusy)
		return nil
	}
	var round []*update
	taken := map[claim]bool{}
	for _, u := range updates {
		if u.clashes(taken) {
			later = append(later, u)
			continue
		}
		if err := s.admit(u); err != nil {
			u.end(err)
			continue
		}
		round = append(round, u)
	}
	round = s.noteRound(round)
	// ---- Up to here no file has changed. place exchanges the files or puts them all back; what it returns is committed.
	// ----
	if round = s.place(round, git); len(round) == 0 {
		s.removalsDone()
		return later
	}
	found := new(finding)
	for _, u := range round {
		found.candidates = append(found.candidates, u.candidates()...)
	}
	// The files are the truth: if the Sink refuses the change, the next look applies it.
	err := s.commitPart(found, false)
	if err == nil {
		s.removalsDone()
	}
	s.tell(round)
	for _, u := range round {
		for _, c := range u.candidates() {
			delete(s.suspects, c.path)
		}
		u.end(err)
	}
	if err == nil {
		s.report(start, "written")
	}
	return later
}

// admit judges an update as a look would judge the files.
func (s *Source) admit(u *update) error {
	if !s.complete(u) {
		return atomicfile.ErrChanged
	}
	all := u.candidates()
	for _, c := range all {
		c.prev = s.table.files[c.path]
	}
	j := &judge{
		table: s.table, candidates: all, require: s.sealed,
		row:     s.o.Sink.File,
		display: func(path string) string { return path }, // the message goes to the client
		locate:  s.locate, meant: func(project catalog.UUID) bool { return project == u.removes },
	}
	j.run()
	refused := slices.IndexFunc(all, func(c *candidate) bool { return c.rejected })
	if refused < 0 {
		return s.mayClaim(u)
	}
	for _, ref := range u.c.refs {
		var conflict *catalog.Error
		eachClaim(ref, func(what string, cl claim) {
			path, lost := j.keeper(u.c, cl)
			if !lost || u.had[cl] || conflict != nil {
				return
			}
			conflict = conflictWith(u.covers, what, j.conflictText(what, ref, path))
		})
		if conflict != nil {
			return conflict
		}
	}
	return s.invalidFile(append(all[refused].diags, all[refused].cross...), u.covers)
}

func (s *Source) locate(path string) (*hclfile.Result, error) {
	t, err := openTree(s.o.Dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return locate(t, s.display(path), path)
}

// place exchanges the files of a round, syncs their folders, and returns the updates that are durable in place. If git
// has started meanwhile, it takes all of them back: git may have read the old files and be about to write over the new
// ones.
func (s *Source) place(round []*update, before gitState) []*update {
	errs := make([]error, len(round))
	sideBySide(len(round), func(i int) { errs[i] = s.putAll(round[i]) })
	var folders []string
	placed := round[:0]
	for i, u := range round {
		if errs[i] != nil {
			u.end(errs[i])
			continue
		}
		for _, target := range u.targets() {
			if dir := filepath.Dir(target); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
		placed = append(placed, u)
	}
	if s.gitNow() != before {
		for _, u := range placed {
			s.takeBack(u, errGitBusy)
		}
		return nil
	}
	errs = make([]error, len(folders))
	sideBySide(len(folders), func(i int) { errs[i] = atomicfile.SyncFolder(s.o.Disk, folders[i]) })
	durable := placed[:0]
	for _, u := range placed {
		var err error
		for _, target := range u.targets() {
			err = errors.Join(err, errs[slices.Index(folders, filepath.Dir(target))])
		}
		if err != nil {
			s.takeBack(u, writeFault("write "+u.c.path, err))
			continue
		}
		durable = append(durable, u)
	}
	return durable
}

// putAll exchanges all files of an update: texts and key lists first, the project's file last. If one of them cannot be
// exchanged, the others are put back. If there are several, a note that is durable before the first exchange lets the
// next look finish the way back after a crash (atomicfile.Note).
func (s *Source) putAll(u *update) (err error) {
	defer func() {
		if err != nil {
			u.takeBodiesBack()
		}
	}()
	swaps, d := u.swaps(), s.o.Disk
	if len(swaps) > 1 {
		if u.note, err = atomicfile.Note(d, swaps); err != nil {
			return writeFault("write "+u.c.path, err)
		}
	}
	last := len(swaps) - 1
	for i, b := range u.bodies {
		if i == last {
			if err = atomicfile.SyncFolders(d, atomicfile.Targets(swaps[:last])); err != nil {
				return writeFault("write "+u.c.path, err)
			}
		}
		if err = b.file.Put(); err != nil {
			return swapFault(err)
		}
		b.stamp = renamed(b.stamp, b.file.Target)
	}
	u.depend()
	if u.stays {
		if now, rerr := d.ReadFile(u.file.Target); rerr != nil || digest(now) != u.file.Old {
			return atomicfile.ErrChanged
		}
		return nil
	}
	if err = atomicfile.SyncFolders(d, atomicfile.Targets(swaps[:last])); err != nil {
		return writeFault("write "+u.c.path, err)
	}
	return u.put()
}

// takeAllBack undoes putAll.
func (u *update) takeAllBack() {
	if !u.stays {
		u.file.TakeBack()
		if len(u.bodies) > 0 {
			_ = atomicfile.SyncFolder(u.file.Folder.Disk, filepath.Dir(u.file.Target)) // was not acknowledged
		}
	}
	u.takeBodiesBack()
}

func (u *update) takeBodiesBack() {
	for _, b := range u.bodies {
		b.file.TakeBack()
	}
}

// swaps returns the files that the update writes, in the order in which they are put.
func (u *update) swaps() (all []*atomicfile.Swap) {
	for _, b := range u.bodies {
		all = append(all, &b.file)
	}
	if !u.stays {
		all = append(all, &u.file)
	}
	return all
}

// targets returns the files that the update writes, links resolved.
func (u *update) targets() []string { return atomicfile.Targets(u.swaps()) }

// put exchanges the file. This is the commit.
func (u *update) put() error {
	if err := u.file.Put(); err != nil {
		return swapFault(err)
	}
	if !u.c.gone {
		u.c.stamp = renamed(u.c.stamp, u.file.Target)
	}
	return nil
}

// takeBack undoes put and ends the update.
func (s *Source) takeBack(u *update, why error) {
	u.takeAllBack()
	u.end(why)
}

// swapFault returns the client's error for a Swap that was not put.
func swapFault(err error) error {
	if fault, is := errors.AsType[*atomicfile.Fault](err); is {
		return writeFault(fault.Step, fault.Err)
	}
	return err
}

// sideBySide runs f(0) … f(n-1) concurrently: they mostly wait for the disk.
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
