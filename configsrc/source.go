package configsrc

import (
	"context"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/resolver/catalog"
)

// A Source keeps a Sink in step with a folder. Call Load, then Run; the other methods are safe for concurrent use.
//
// It is a front: its loop watches and looks, its writer makes writes and hands them to the loop, its report and its
// origins say what is served. All of them stand on one base, which is what is accepted.
type Source struct {
	edits.Origins
	base   *base
	report *reporter
	turns  turns
	look   *looker
	loop   *loop
	edge   *follower // with Options.Follow in place of the loop
	git    *gitGuard
	writer *edits.Writer
	writes writeCount
}

// New returns a Source that has not loaded anything yet.
func New(o Options) *Source {
	if o.Disk == nil {
		o.Disk = o.Clone.Disk()
	}
	if o.Room == nil {
		o.Room = atomicfile.RoomOf
	}
	if o.StatEvery == 0 {
		o.StatEvery = statEvery
	}
	b := newBase(o)
	report := &reporter{log: o.Logger, edge: o.Follow, problems: o.Problems, status: Status{State: StateLoading}}
	states := newPathStates(b)
	watching := &watching{dir: o.Dir, log: o.Logger, report: report}
	find := &finder{base: b, states: states, beforeList: watching.addFolder}
	commits := &committer{base: b, report: report, warnings: newWarnings(b)}
	brake := &brake{base: b, states: states, report: report, removals: &removals{sink: o.Sink}}
	files := newConfigFolder(b, report)
	amends := &amender{base: b, files: files, find: find}
	formers := &formers{base: b, amends: amends}
	look := &looker{base: b, find: find, commits: commits, brake: brake, amends: amends, formers: formers}
	rounds := &rounds{files: files, updates: make(chan *submission), commits: commits, states: states,
		removals: brake.removals, formers: formers}
	turns := make(turns)
	return &Source{
		Origins: edits.OriginsOf(b.Base),
		base:    b,
		report:  report,
		turns:   turns,
		look:    look,
		loop: &loop{look: look, rounds: rounds, sweeps: &sweeper{base: b, watching: watching, report: report},
			watching: watching, turns: turns, states: states, git: files.git, report: report},
		edge:   &follower{base: b, commits: commits, brake: brake},
		git:    files.git,
		writer: edits.NewWriter(b.Base, files, rounds.submit),
	}
}

// Watch starts collecting events. Call it before Load: a save made while Load runs is then handled as soon as Run
// starts. Run must follow, which ends the watch.
func (s *Source) Watch() {
	if !s.base.o.Follow {
		s.loop.watching.restart()
	}
}

// Load brings the Sink in step with the folder for the first time. Files that do not load are no error, see Status; nor
// is an unreadable folder if the Sink has something to serve.
func (s *Source) Load(ctx context.Context) error {
	if err := s.look.commits.loadTable(); err != nil {
		return err
	}
	if err := s.look.brake.removals.loadNote(); err != nil {
		return err
	}
	if s.base.o.Follow {
		return s.edge.load(ctx)
	}
	return s.look.load(ctx)
}

// Run looks until ctx is done: at paths named by events, at suspects, and by the timer at everything. Call it once,
// after Load.
func (s *Source) Run(ctx context.Context) error {
	if s.base.o.Follow {
		return s.edge.run(ctx, s.turns)
	}
	return s.loop.run(ctx)
}

// Reload looks at everything, including contents, a second time if something is suspect, and returns nil, ErrHeld or
// the error. Quarantined files are no error, see Status. Run must be running.
func (s *Source) Reload(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		if s.base.o.Follow {
			return s.edge.retryRefused(ctx)
		}
		return s.look.lookTwice(ctx, scope{Seen: folder.Seen{All: true}, hash: true})
	})
}

// Confirm lets a held reload through, once. by is who has confirmed it; zero: the operator. On an edge that is the next
// ApplyTree.
func (s *Source) Confirm(ctx context.Context, by catalog.Author) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.look.brake.confirm(by)
		if s.base.o.Follow {
			return nil
		}
		return s.look.lookTwice(ctx, scope{Seen: folder.Seen{All: true}})
	})
}

// Rebuild fills a Sink that has lost its content from the files. Run must be running.
func (s *Source) Rebuild(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.base.setLive(false)
		s.look.commits.forgetFiles()
		s.look.find.states.forgetSuspects()
		return s.Load(ctx)
	})
}

// Write is edits.Writer.Write, and counts.
func (s *Source) Write(ctx context.Context, e *catalog.Edit) (edits.Outcome, error) {
	out, err := s.writer.Write(ctx, e)
	if !e.DryRun && (err != nil || len(out.Paths) > 0) { // else nothing was to be changed
		s.writes.count(err, s.base.o.ReadOnly || s.base.o.Follow)
	}
	return out, err
}

// EachWrite yields how many writes of clients changed files, were refused for what they asked, and failed. Dry runs, and
// writes that had nothing to change, are not counted.
func (s *Source) EachWrite(yield func(result string, count uint64)) { s.writes.each(yield) }

// ApplyTree takes one change of the authority's files: as a whole, or it returns an error and nothing has changed. The
// Source's position is then that of the change. Files that are refused are no error, see Status. The error is ErrHeld
// if the brake holds the change: give it again, with what has come since, until Confirm lets it through. Run must be
// running; c must not be changed any more.
func (s *Source) ApplyTree(ctx context.Context, c catalog.TreeChange) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error { return s.edge.applyTree(ctx, c) })
}

// GitTurn runs f, which works in git's folder, while no write replaces a file, see gitGuard.takeTurn.
func (s *Source) GitTurn(f func() error) error { return s.git.takeTurn(f) }

// PatientGitTurn is GitTurn for a call that a client waits for: it waits as long for somebody's git as a write does.
func (s *Source) PatientGitTurn(ctx context.Context, f func() error) error {
	return s.git.runPatiently(ctx, func(context.Context) error { return s.git.takeTurn(f) })
}

// Overlay returns what is live with a Difference from it. layer must have no files yet.
func (s *Source) Overlay(d *compare.Difference, layer edits.Layer) (*edits.Overlay, error) {
	return edits.NewOverlay(s.base.Base, d, layer)
}

// Status returns the present state.
func (s *Source) Status() Status { return s.report.present() }
