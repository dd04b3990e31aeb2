package platform

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"fingerpost/api/web"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver/catalog"
)

// A conflictAnswer is a field that keeps a proposal from being merged.
type conflictAnswer struct {
	Kind     string  `json:"kind"` // the block's name in the files; "file" for one that a template names
	Project  *string `json:"project"`
	Object   string  `json:"object"`
	Field    *string `json:"field"` // null: the object is gone, or goes
	Secret   bool    `json:"secret,omitempty"`
	Removes  bool    `json:"removes,omitempty"` // the proposal removes the object
	Was      any     `json:"was"`
	Live     any     `json:"live"`
	By       *string `json:"by"`
	At       *string `json:"at"`
	Proposed any     `json:"proposed"`
}

func conflictsOf(list []proposals.Conflict) []conflictAnswer {
	answers := []conflictAnswer{}
	for _, c := range list {
		a := conflictAnswer{Kind: string(c.Kind), Project: orNull(c.Project), Object: c.Object, Field: orNull(c.Field),
			Secret: c.Secret, Removes: c.Removes, Was: c.Was, Live: c.Live, By: orNull(c.By), Proposed: c.Proposed}
		if !c.At.IsZero() {
			a.At = orNull(catalog.Moment(c.At))
		}
		answers = append(answers, a)
	}
	return answers
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// An approvalAnswer is an approval of a proposal's last commit.
type approvalAnswer struct {
	Key       string `json:"key"`
	By        string `json:"by"`
	CreatedAt string `json:"createdAt"`
	Counts    bool   `json:"counts"` // the key may still write to all that the proposal touches
}

func (s *Proposals) approvalsOf(p *proposals.Proposal) []approvalAnswer {
	answers := []approvalAnswer{}
	for i := range p.Approvals {
		a := &p.Approvals[i]
		answers = append(answers, approvalAnswer{a.Key, a.By, catalog.Moment(a.At), s.counts(p, a)})
	}
	return answers
}

// counts reports whether the key of an approval could give it now.
func (s *Proposals) counts(p *proposals.Proposal, a *proposals.Approval) bool {
	k := holderOf(s.Live.Keys(), a.Giver(), catalog.MayWrite)
	return k != nil && !k.Expired(time.Now()) && !s.Blocked[k.ID] && k.Allow&catalog.MayWrite != 0 && sees(k)(p)
}

// approved returns APPROVAL_NEEDED unless enough keys approve of a proposal.
func (s *Proposals) approved(p *proposals.Proposal) error {
	n := 0
	for i := range p.Approvals {
		if s.counts(p, &p.Approvals[i]) {
			n++
		}
	}
	missing := s.Set.Needs - n
	if missing <= 0 {
		return nil
	}
	people := "1 more person"
	if missing > 1 {
		people = fmt.Sprintf("%d more people", missing)
	}
	return &catalog.Error{Code: catalog.CodeApprovalNeeded, Message: people +
		" must approve of the proposal as it is now before it is applied: with a key that has write, and that has not " +
		"written to it"}
}

// update answers POST /api/platform/proposals/{name}/update, for who may write to the proposal.
func (s *Proposals) update(r *web.Request) error {
	name, ctx, cancel, err := s.onProposal(r, catalog.MayWrite|catalog.MayPropose)
	if err != nil {
		return err
	}
	defer cancel()
	p, err := s.Set.Update(ctx, name, writer(r.Key), r.Author(), seenAt(r, seenBy(r.Key, noProposal(name))))
	if err != nil {
		return err
	}
	return r.SucceedJSON("proposal brought up to date", s.answerOf(p))
}

// approve answers POST /api/platform/proposals/{name}/approve.
func (s *Proposals) approve(r *web.Request) error {
	name, ctx, cancel, err := s.onProposal(r, catalog.MayWrite)
	if err != nil {
		return err
	}
	defer cancel()
	p, again, err := s.Set.Approve(ctx, name, writer(r.Key), r.Author(), seenAt(r, seenBy(r.Key, noProposal(name))))
	if err != nil {
		return err
	}
	if !again {
		s.Live.Note(catalog.AuditApprove, r.Author(), catalog.FieldChange{Field: "proposal", After: name},
			catalog.FieldChange{Field: "commit", After: p.Commit})
	}
	return r.SucceedJSON("proposal approved", struct {
		Name      string           `json:"name"`
		Commit    string           `json:"commit"`
		Approvals []approvalAnswer `json:"approvals"`
		Needed    int              `json:"approvalsNeeded"`
	}{p.Name, p.Commit, s.approvalsOf(p), s.Set.Needs})
}

const (
	commentField = "comment"
	maxComment   = 2000 // characters: it is in the message of a commit
)

// readComment reads the body of a call that applies a proposal: none, or an object with a comment.
func readComment(r *web.Request) (string, error) {
	text, err := r.BodyText()
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "", err
	}
	f, err := r.ReadForm([]string{commentField})
	if err != nil {
		return "", err
	}
	comment := ""
	f.FillOptional(commentField, &comment)
	comment = strings.TrimSpace(strings.ReplaceAll(comment, "\r\n", "\n"))
	switch {
	case utf8.RuneCountInString(comment) > maxComment:
		f.Fail(commentField, fmt.Sprintf("has more than %d characters", maxComment))
	case strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(comment), catalog.BreaksLine):
		f.Fail(commentField, "must have no control characters but line ends")
	}
	if len(f.Problems) > 0 {
		return "", web.Invalid(f.Problems...)
	}
	return comment, nil
}
