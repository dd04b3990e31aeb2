package edits

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A bulkTarget is the blocks of several projects, in one or more files, which change together or not at all.
type bulkTarget struct {
	edits []catalog.ProjectEdit
	in    map[string][]*catalog.ProjectEdit // by the file of the project
	wants map[int]*catalog.ProjectConfig    // projects of the first file after the edit, by their index there
}

// find implements target. All files are locked; the first of them, by path, is the file of the write.
func (b *bulkTarget) find(w *attempt) (path string, err error) {
	b.in = map[string][]*catalog.ProjectEdit{}
	for i := range b.edits {
		e := &b.edits[i]
		path, ok := w.FileOf(judge.ProjectClaim(e.UUID))
		if !ok {
			return "", catalog.NotFound("project")
		}
		b.in[path] = append(b.in[path], e)
	}
	paths := slices.Sorted(maps.Keys(b.in))
	w.also = paths[1:]
	return paths[0], nil
}

func (b *bulkTarget) read(w *attempt) (err error) {
	w.file, w.was, w.decoded, err = w.openFile(w.path)
	return err
}

// change implements target: it adds the other files to the update.
func (b *bulkTarget) change(w *attempt) (content []byte, err error) {
	for _, path := range w.also {
		swap, err := b.swap(w, path)
		if err != nil {
			return nil, err
		}
		if swap != nil {
			w.update.Files = append(w.update.Files, swap)
		}
	}
	content, b.wants, err = b.rewrite(w, w.path, w.was, hcledit.NewDraft(w.decoded))
	return content, err
}

// swap makes the new content of a file other than the first, nil if it stays as it is.
func (b *bulkTarget) swap(w *attempt, path string) (*Swap, error) {
	f, was, decoded, err := w.openFile(path)
	if err != nil {
		return nil, err
	}
	content, wants, err := b.rewrite(w, path, was, hcledit.NewDraft(decoded))
	if err != nil || string(content) == string(was.Bytes) {
		return nil, err
	}
	f.Content = content
	f.Config = &judge.Candidate{Path: path, Content: judge.Content{Bytes: content}, Stamp: f.Stamp}
	f.Config.Decode(w.Display(path), w.tree, w.Rules())
	return f, proveBulk(w, path, was, f.Config, wants)
}

// rewrite makes the edits of one file.
func (b *bulkTarget) rewrite(w *attempt, path string, was *judge.Content, draft *hcledit.Draft) (content []byte,
	wants map[int]*catalog.ProjectConfig, err error) {
	projects, defaults := was.Declared.Projects, w.Facts.Defaults()
	wants = map[int]*catalog.ProjectConfig{}
	for _, e := range b.in[path] {
		at := slices.IndexFunc(projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == e.UUID })
		if at < 0 {
			return nil, nil, projectMoved(path)
		}
		have := inForce(&projects[at], defaults)
		want := have
		if err := e.Change(&want); err != nil {
			return nil, nil, err
		}
		if err := draft.RewriteProject(&have, &want); err != nil {
			return nil, nil, fmt.Errorf("edit %s: %w", path, err)
		}
		wants[at] = &want
		w.update.bulk.was.Projects = append(w.update.bulk.was.Projects, have)
		w.update.bulk.is.Projects = append(w.update.bulk.is.Projects, want)
	}
	if content, err = draft.Bytes(); err != nil {
		return nil, nil, fmt.Errorf("edit %s: %w", path, err)
	}
	return content, wants, nil
}

// prove implements target.
func (b *bulkTarget) prove(w *attempt, result *judge.Candidate) error {
	return proveBulk(w, w.path, w.was, result, b.wants)
}

// proveBulk returns an error if a decoded file is not the previous one with the projects that are wanted.
func proveBulk(w *attempt, path string, was *judge.Content, is *judge.Candidate,
	wants map[int]*catalog.ProjectConfig) error {
	if is.Declared == nil {
		return w.wouldBreak(is.Diags, w.edit.Covers)
	}
	want, got := *was.Declared, *is.Declared
	same := len(want.Projects) == len(got.Projects)
	got.Projects = slices.Clone(got.Projects)
	for at, p := range wants {
		same = same && sayEqual(inForce(&got.Projects[at], w.Facts.Defaults()), p)
		if same {
			got.Projects[at] = want.Projects[at]
		}
	}
	if !same || !reflect.DeepEqual(want, got) {
		return fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	return nil
}
