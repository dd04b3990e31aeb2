package gitrepo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// maxApprovals bounds the approvals of a commit: each is a trailer of the merge.
const maxApprovals = 100

// An Approval says that somebody other than its authors has read a proposal as it was at a commit, and wants it applied.
type Approval struct {
	KeyID, Key string // of the API key, and its name then
	By         string // Name <address>
	At         time.Time
	Commit     string
	Person     *ProposalPerson `json:",omitempty"` // see ProposalKey
}

// Giver returns the key of the approval.
func (a *Approval) Giver() *ProposalKey {
	return &ProposalKey{ID: a.KeyID, Name: a.Key, Person: a.Person}
}

// approvalsOf lists the approvals of a commit by keys that have not written to the proposal. A write makes another
// commit, so it voids them.
func (record *proposalRecord) approvalsOf(commit string) (list []Approval) {
	for _, a := range record.Approvals {
		if a.Commit == commit && !a.Giver().Wrote(record.Keys) {
			list = append(list, a)
		}
	}
	return list
}

var refuseOwnApproval = &catalog.Error{Code: catalog.CodeForbidden,
	Message: "this key, or the same one before it was rotated, has written to the proposal; a proposal is approved by " +
		"somebody else"}

// ApproveProposal notes durably that a key approves of a proposal as it is, and returns the proposal. A key counts once:
// again reports that it has done so before. An approval by the same holder's key before or after a rotation is replaced,
// since that key ends. check decides whether the key may.
func (r *Repo) ApproveProposal(ctx context.Context, name string, approver ProposalKey, by catalog.Author,
	check func(p *Proposal) error) (p *Proposal, again bool, err error) {
	if _, err := r.checked(ctx, name, check); err != nil { // describes it before the lock
		return nil, false, err
	}
	r.work.Lock()
	defer r.work.Unlock()
	p, err = r.checked(ctx, name, check)
	if err != nil {
		return nil, false, err
	}
	switch {
	case approver.Wrote(p.Keys):
		return nil, false, refuseOwnApproval
	case slices.ContainsFunc(p.Approvals, func(a Approval) bool { return a.KeyID == approver.ID }):
		return p, true, nil
	case len(p.Approvals) >= maxApprovals:
		return nil, false, &catalog.Error{Code: catalog.CodeConflict,
			Message: fmt.Sprintf("the proposal has %d approvals already, and no more are kept", maxApprovals)}
	}
	record, err := r.recordOf(ctx, name, p.Commit)
	if err != nil {
		return nil, false, err
	}
	if record == nil {
		record = &proposalRecord{Keys: []ProposalKey{{}}, Tips: []string{p.Commit}} // a person has made it
	}
	author, address := r.identityOfAuthor(by)
	others := slices.DeleteFunc(record.approvalsOf(p.Commit), func(a Approval) bool {
		return approver.SameHolder(*a.Giver())
	})
	record.Approvals = append(others, Approval{KeyID: approver.ID, Key: by.Key, Person: approver.Person, Commit: p.Commit,
		By: nameOnly(author) + " <" + nameOnly(address) + ">", At: time.Now().UTC()})
	b, err := json.Marshal(record)
	if err == nil {
		err = r.o.Ledger.ChangeProposals(map[string][]byte{name: b})
	}
	if err != nil {
		return nil, false, err
	}
	p.Keys, p.Approvals = record.Keys, record.Approvals
	return p, false, nil
}
