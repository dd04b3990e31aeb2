package configsrc

import (
	"fmt"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// takeOver makes the part of a write that takes a domain from the project that has never proven it: its file changes in
// the same write, with an author of its own, who is not a person. Two projects in one file stay as they are, because the
// file has one author.
func (w *write) takeOver(want *catalog.ProjectConfig) error {
	t := w.edit.Takes
	if t == nil {
		return nil
	}
	taken := func() error {
		e := &catalog.Error{Code: catalog.CodeConflict, Message: "this domain is declared already"}
		e.Problems.Addf("domain", "belongs to a project already")
		return e
	}
	path, there := w.fileOf(judge.ProjectClaim(t.From))
	if !there || path == w.path {
		return taken()
	}
	if !slices.Contains(w.also, path) {
		w.also = append(w.also, path)
		return errMoreFiles
	}
	f, was, decoded, err := w.openFile(path)
	if err != nil {
		return err
	}
	left := *was.Declared
	left.Projects = slices.Clone(left.Projects)
	at := slices.IndexFunc(left.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == t.From })
	if at < 0 {
		return taken()
	}
	loser := &left.Projects[at]
	had := *loser
	isIt := func(d catalog.Domain) bool { return d.Name == t.Domain }
	i := slices.IndexFunc(had.Domains, isIt)
	if i < 0 {
		return taken()
	}
	record := had.Domains[i]
	record.ProjectID = had.Project.ID
	if free, err := names.Unproven(w.facts, &record); err != nil {
		return err
	} else if !free {
		return taken()
	}
	loser.Domains = slices.DeleteFunc(slices.Clone(had.Domains), isIt)
	draft := hcledit.NewDraft(decoded)
	before, after := inForce(&had, w.facts.Defaults()), inForce(loser, w.facts.Defaults())
	if err := draft.RewriteProject(&before, &after); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if f.Content, err = draft.Bytes(); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	f.c = &judge.Candidate{Path: path, Content: judge.Content{Bytes: f.Content}, Stamp: f.stamp}
	if f.c.Decode(w.display(path), w.tree, w.today()); f.c.Declared == nil {
		return w.wouldBreak(f.c.Diags, w.edit.Covers)
	}
	if len(loser.Domains) == 0 {
		loser.Domains = f.c.Declared.Projects[at].Domains[:0:0]
	}
	if !reflect.DeepEqual(&left, f.c.Declared) {
		return fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	f.c.By = &catalog.Author{Door: catalog.DoorDNS, Reason: t.Reason, RequestID: catalog.NewUUID().String()}
	w.update.files = append(w.update.files, f)
	if i := slices.IndexFunc(want.Domains, isIt); i >= 0 {
		want.Domains[i].Verified = &t.Verified
	}
	return nil
}
