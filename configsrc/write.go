package configsrc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The three writes below change what the files declare, and the Sink with them (contract files.md 5). When one returns
// nil, the change is in its file, file and folder are synced, and the Sink serves it. Any error means that nothing was
// changed; those that a caller is meant to see are *catalog.Error, others are faults of ours or of the machine. Run must
// be running. They may be called from any goroutine: writes to different files run side by side, those to one file one
// after the other, each on what is on disk at that moment.

// UpdateProject applies change to the project with the uuid, as the files declare it now, its settings as they are in
// force. An error of change is returned as it is. change may run again, on newer content, where somebody else saves at
// the same time. It must not keep the project.
func (s *Source) UpdateProject(ctx context.Context, uuid catalog.UUID, change func(p *catalog.ProjectConfig) error) error {
	return s.retried(ctx, func() error {
		return s.edit(ctx, uuid, func(e *edit) error {
			defaults := s.o.Sink.Defaults()
			have := inForce(e.project(), defaults)
			want := have
			want.Domains = slices.Clone(have.Domains)
			ownMail(&want)
			if err := change(&want); err != nil {
				return err
			}
			if err := s.protect(e, &have, &want); err != nil {
				return err
			}
			normalize(&want)
			e.normalMail(&want)
			e.expect = func(got *catalog.Declared) bool { return e.rest(got) && sayEqual(&got.Projects[e.at], &want, defaults) }
			return e.draft.RewriteProject(&have, &want)
		})
	})
}

// DeleteProject takes the project's block out of its file, and the file away where it declares nothing else. check may
// refuse, with an error that is returned as it is.
func (s *Source) DeleteProject(ctx context.Context, uuid catalog.UUID, check func(p *catalog.ProjectConfig) error) error {
	return s.retried(ctx, func() error {
		return s.edit(ctx, uuid, func(e *edit) error {
			have := inForce(e.project(), s.o.Sink.Defaults())
			if err := check(&have); err != nil {
				return err
			}
			e.expect, e.removes = e.without, true
			return e.draft.RemoveProject(have.Project.Slug)
		})
	})
}

// CreateProject declares a new project in a file of its own, named after the slug. p needs a UUID.
func (s *Source) CreateProject(ctx context.Context, p *catalog.Project) error {
	if err := s.writable(); err != nil {
		return err
	}
	defer s.beginWrite()()
	content, err := hclfile.NewProject(p)
	if err != nil {
		return fmt.Errorf("write project %s: %w", p.Slug, err)
	}
	// A name that is taken by something else is no reason to refuse the slug.
	for n := 1; n <= 100; n++ {
		name := p.Slug + ".hcl"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.hcl", p.Slug, n)
		}
		if err = s.patient(ctx, func() error { return s.create(ctx, name, content) }); !errors.Is(err, fs.ErrExist) {
			return err
		}
		if broken := s.brokenFile(name); broken != nil {
			return broken
		}
	}
	return err
}

// retried gives a write that lost against a save at the same time a second chance, and no third (contract files.md 5).
func (s *Source) retried(ctx context.Context, write func() error) error {
	if err := s.writable(); err != nil {
		return err
	}
	defer s.beginWrite()()
	err := s.patient(ctx, write)
	if errors.Is(err, ErrChanged) {
		err = s.patient(ctx, write)
	}
	if errors.Is(err, ErrChanged) {
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
	}
	return err
}

// beginWrite counts a write as long as it is under way.
func (s *Source) beginWrite() (end func()) {
	n := s.writing.Add(1)
	if s.o.OnWriters != nil {
		s.o.OnWriters(int(n))
	}
	return func() { s.writing.Add(-1) }
}

func (s *Source) writable() error {
	if s.o.ReadOnly {
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node never writes into the config folder (serve --read-only)"}
	}
	return s.checkRoom()
}

// An edit is a change of one project's block in the making.
type edit struct {
	path, target string
	src          []byte
	stamp        catalog.Stamp     // of src
	info         fs.FileInfo       // of the file that had it
	deps         []catalog.Dep     // of src
	declared     *catalog.Declared // by src
	sound        *catalog.Declared // the same, where src gives no warnings either
	draft        *hclfile.Draft    // of src
	decoded      *hclfile.Result   // src
	at           int               // of the project in it
	expect       func(got *catalog.Declared) bool
	removes      bool // the project goes
}

func (e *edit) project() *catalog.ProjectConfig { return &e.declared.Projects[e.at] }

// edit rewrites the file of a project by rewrite, which notes the edits in e.draft and sets e.expect.
func (s *Source) edit(ctx context.Context, uuid catalog.UUID, rewrite func(e *edit) error) error {
	path, ok := s.fileOf(projectClaim(uuid))
	if !ok {
		return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such project"}
	}
	defer s.writers.lock(path)()
	t := lateTree(s.o.Dir)
	defer t.Close()
	e, u, err := s.openEdit(t, path, uuid)
	if err != nil {
		return err
	}
	if err := rewrite(e); err != nil {
		return err
	}
	out, err := e.draft.Bytes()
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if bytes.Equal(out, e.src) && len(e.draft.Bodies()) == 0 {
		s.parsed.keep(path, u.want, e.decoded.Parsed())
		return nil
	}
	made, err := s.fill(u, t, out, e)
	if err != nil {
		return err
	}
	if err := s.submit(ctx, u); err != nil {
		return err
	}
	if !u.c.gone {
		s.parsed.keep(path, u.c.stamp.Hash, made)
	}
	return nil
}

// openEdit reads the file that declares a project.
func (s *Source) openEdit(t *tree, path string, uuid catalog.UUID) (*edit, *update, error) {
	target, src, stamp, info, err := s.readTarget(t, path)
	if err != nil {
		return nil, nil, err
	}
	now := &candidate{path: path, bytes: src, stamp: stamp}
	decode := func(o hclfile.Options) (*hclfile.Result, hclfile.Diagnostics) {
		return hclfile.Decode(s.display(path), src, o)
	}
	if p := s.parsed.take(path, stamp.Hash); p != nil {
		decode = p.Decode
	}
	decoded := now.decodeBy(s.display(path), t, decode)
	if now.declared == nil {
		return nil, nil, invalidFile(now.diags)
	}
	at := slices.IndexFunc(now.declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == uuid })
	if at < 0 {
		return nil, nil, &catalog.Error{Code: catalog.CodeFileChanged,
			Message: "the project is no longer in " + s.display(path) + ", where it was; try again when the files have been reloaded"}
	}
	had := make(map[claim]bool, len(now.claims))
	for _, c := range now.claims {
		had[c] = true
	}
	u := &update{target: target, want: stamp.Hash, had: had, disk: s.o.Disk, done: make(chan error, 1)}
	sound := now.declared
	if len(now.diags) > 0 {
		sound = nil
	}
	return &edit{path: path, target: target, sound: sound, src: src, stamp: stamp, info: info, deps: now.deps, declared: now.declared,
		draft: hclfile.NewDraft(decoded), decoded: decoded, at: at}, u, nil
}

// readTarget reads a file that is going to be replaced. target is its path without links.
func (s *Source) readTarget(t *tree, path string) (target string, src []byte, stamp catalog.Stamp, info fs.FileInfo, err error) {
	if root, _, err := s.where.find(); err == nil {
		target = filepath.Join(root, filepath.FromSlash(path))
		if src, info, ok := readPlain(target, MaxFileBytes); ok { // nearly always
			return target, src, stampOf(info, src), info, nil
		}
	}
	if target, err = editTarget(s.o.Dir, path); err != nil {
		return "", nil, stamp, nil, writeFault("edit "+path, err)
	}
	if src, stamp, err = t.read(path, MaxFileBytes); err != nil {
		return "", nil, stamp, nil, writeFault("read "+path, err)
	}
	if info, err = s.o.Disk.Stat(target); err != nil {
		return "", nil, stamp, nil, writeFault("edit "+path, err)
	}
	return target, src, stamp, info, nil
}

// fill decodes the new content as a reload would, checks that it says what is meant and nothing else, and puts it on the
// disk under another name. It returns what the next edit of it can go by.
func (s *Source) fill(u *update, t *tree, out []byte, e *edit) (*hclfile.Parsed, error) {
	swaps, err := s.bodySwaps(t, e)
	if err != nil {
		return nil, err
	}
	c := &candidate{path: e.path, bytes: out, stamp: e.stamp, bodies: contents(swaps)}
	decoded := c.decodeBy(s.display(e.path), t, func(o hclfile.Options) (*hclfile.Result, hclfile.Diagnostics) {
		o.Sound = e.sound
		return e.draft.Decode(out, o)
	})
	if c.declared == nil {
		return nil, wouldBreak(c.diags)
	}
	if err := e.draft.Verify(decoded); err != nil {
		return nil, fmt.Errorf("edit %s: %w", e.path, err)
	}
	if !e.expect(c.declared) {
		return nil, fmt.Errorf("edit %s: %w", e.path, hclfile.ErrVerify)
	}
	made := decoded.ParsedWhole(c.diags) // now: what c declares is going to be the Sink's
	u.c, u.bodies, u.stays = c, swaps, bytes.Equal(out, e.src)
	if e.removes {
		u.removes = e.project().Project.UUID
	}
	if len(c.refs) == 0 && !s.isLink(e.path) { // of a link the target stays, with its comments: the link is somebody's
		*c = candidate{path: e.path, gone: true}
		return made, u.stage(nil, nil)
	}
	return made, u.stage(out, e.info)
}

func (s *Source) isLink(path string) bool {
	info, err := os.Lstat(filepath.Join(s.o.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// create writes a file that is not there yet.
func (s *Source) create(ctx context.Context, name string, content []byte) error {
	defer s.writers.lock(name)()
	if _, err := os.Lstat(filepath.Join(s.o.Dir, name)); err == nil {
		return fs.ErrExist
	}
	t, err := openTree(s.o.Dir)
	if err != nil {
		return writeFault("open the config folder", err)
	}
	defer t.Close()
	root, _, err := s.where.find()
	if err != nil {
		return writeFault("open the config folder", err)
	}
	c := &candidate{path: name, bytes: content}
	if c.decode(s.display(name), t); c.declared == nil {
		return fmt.Errorf("write %s: the new content is invalid: %s", name, c.diags[0].Summary)
	}
	u := &update{c: c, target: filepath.Join(root, name), create: true, disk: s.o.Disk, done: make(chan error, 1)}
	if err := u.stage(content, nil); err != nil {
		return err
	}
	return s.submit(ctx, u)
}

// fileOf tells which file declares what the claim stands for.
func (s *Source) fileOf(c claim) (path string, ok bool) {
	s.known.RLock()
	defer s.known.RUnlock()
	f := s.table.owner(c)
	if f == nil {
		return "", false
	}
	return f.path, true
}

// brokenFile is why nothing can be written beside a quarantined file of the same name.
func (s *Source) brokenFile(path string) error {
	s.known.RLock()
	defer s.known.RUnlock()
	if bad := s.bad[path]; bad != nil {
		return invalidFile(bad.diags)
	}
	return nil
}

// invalidFile says that a file has to be repaired before it can be written to.
func invalidFile(ds hclfile.Diagnostics) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file is invalid; repair it first"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = fmt.Sprintf("the config file is invalid, repair it first: %s:%d:%d: %s", d.File, d.Start.Line, d.Start.Column, d.Summary)
			break
		}
	}
	return e
}

// wouldBreak says that no file can hold what was asked for, such as a text that is too large for it.
func wouldBreak(ds hclfile.Diagnostics) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file would be invalid with this change"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = fmt.Sprintf("the config file would be invalid with this change: %s:%d:%d: %s: %s", d.File, d.Start.Line, d.Start.Column, d.Summary, d.Detail)
			break
		}
	}
	return e
}

// writeFault says what a caller may know of a system call that failed. The original files are as they were.
func writeFault(step string, err error) error {
	var unfit *unfitError
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	switch {
	case errors.As(err, &unfit):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: unfit.path + " cannot be written: " + unfit.why}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: step + ": the config folder cannot be written: " + cause(err).Error()}
	case full, errors.Is(err, syscall.EIO), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return &catalog.Error{Code: catalog.CodeUnavailable, Message: step + ": " + cause(err).Error()}
	case errors.Is(err, errKeepsChanging):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": the file " + err.Error() + "; try again in a moment"}
	case errors.Is(err, fs.ErrNotExist):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": the file is gone; try again when the files have been reloaded"}
	}
	return fmt.Errorf("%s: %w", step, err)
}

// inForce is a project with its settings as they are served.
func inForce(p *catalog.ProjectConfig, defaults *catalog.Defaults) catalog.ProjectConfig {
	out := *p
	if defaults != nil {
		out.Service, out.Auth = p.Service.Over(defaults.Service), p.Auth.Over(defaults.Auth)
	}
	return out
}

// digest is the hash by which the Sink and the table know a content.
func digest(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
