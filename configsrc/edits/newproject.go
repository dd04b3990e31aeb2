package edits

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// newProject declares a project in a file of its own, named after the slug.
type newProject struct{ project *catalog.ProjectConfig }

// find implements target. A project of another file may have the name: read chooses a free one.
func (n *newProject) find(*attempt) (path string, err error) {
	return n.project.Project.Slug + ".hcl", nil
}

// read implements target: a name that another file has is no reason to refuse the slug.
func (n *newProject) read(w *attempt) (err error) {
	w.was, w.decoded = new(judge.Content), nil
	slug := n.project.Project.Slug
	for number := 1; number <= 100; number++ {
		w.path = slug + ".hcl"
		if number > 1 {
			w.path = fmt.Sprintf("%s-%d.hcl", slug, number)
		}
		if w.o.Fanout {
			w.folder = slug[:min(2, len(slug))]
			if err := w.ws.MakeFolder(w.folder); err != nil {
				return err
			}
			w.path = w.folder + "/" + w.path
		}
		if w.file, err = w.ws.CreateSwap(w.path); !errors.Is(err, fs.ErrExist) {
			return err
		}
		if broken := w.brokenFile(w.path); broken != nil {
			return broken
		}
	}
	return err
}

// change makes the file. The domains of a key that is limited to projects begin as in a project that exists.
func (n *newProject) change(w *attempt) ([]byte, error) {
	p := *n.project
	if p.Domains = slices.Clone(p.Domains); w.edit.Covers != nil {
		had, err := settleProofs(w, p.Project.UUID, nil, p.Domains)
		if err != nil {
			return nil, err
		}
		noteProofs(w, p.Project.UUID, had, nil, p.Domains)
	}
	n.project = &p
	return hcledit.NewProject(&p)
}

func (n *newProject) prove(w *attempt, result *judge.Candidate) error {
	if result.Declared == nil {
		return fmt.Errorf("write %s: the new content is invalid: %s", w.path, result.Diags[0].Summary)
	}
	is := result.Declared.Projects
	if len(is) != 1 || !slices.EqualFunc(is[0].Domains, n.project.Domains, func(a, b catalog.Domain) bool {
		return a.UUID == b.UUID && a.Name == b.Name && catalog.SameFields(a.Fields(), b.Fields())
	}) {
		return fmt.Errorf("write %s: %w", w.path, hcledit.ErrVerify)
	}
	return nil
}
