package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// A Proposal is a change that is not live.
type Proposal struct {
	Name       string  `json:"name"`
	Branch     string  `json:"branch"`
	Commit     string  `json:"commit"` // the last one
	Title      string  `json:"title"`  // of its first commit
	Author     string  `json:"author"`
	Key        *string `json:"key"`      // that made it; nil if its first commit names none
	Readable   bool    `json:"readable"` // its files can be read
	Mergeable  bool    `json:"mergeable"`
	CreatedAt  string  `json:"createdAt"`
	UpdatedAt  string  `json:"updatedAt"`
	CompareURL *string `json:"compareUrl"`
}

// A ProposalLook is a proposal with what a person wants to see before it is applied.
type ProposalLook struct {
	Proposal
	Plan       json.RawMessage  `json:"plan"`       // as "plan --json"; null if it is not Readable
	Commits    []ProposalCommit `json:"commits"`    // the first one first
	AllCommits bool             `json:"allCommits"` // else they are the latest ones
	Diff       string           `json:"diff"`       // the beginning of a long one
	DiffLines  int              `json:"diffLines"`  // of all of it
	Refusal    *Refusal         `json:"refusal"`    // why it cannot be applied now; nil: it can
	Problems   []Problem        `json:"problems"`   // the warnings that it would bring
	// Conflicts are the first fields that keep it from being merged, of ConflictCount.
	Conflicts       []FieldConflict `json:"conflicts"`
	ConflictCount   int             `json:"conflictCount"`
	Approvals       []Approval      `json:"approvals"` // of Commit
	ApprovalsNeeded int             `json:"approvalsNeeded"`
	Own             bool            `json:"own"` // the client's key has written to it, and cannot approve of it
}

// A FieldConflict is a field that a proposal and somebody else have changed since the proposal was made.
type FieldConflict struct {
	Kind     string  `json:"kind"`    // the block's name in the files; "file" for a text that a template names
	Project  *string `json:"project"` // slug
	Object   string  `json:"object"`  // slug, domain, template code, key name, or path of a file
	Field    *string `json:"field"`   // nil: the object is not live any more, or Removes
	Secret   bool    `json:"secret"`  // it has no values here
	Removes  bool    `json:"removes"` // the proposal removes the object
	Was      any     `json:"was"`
	Live     any     `json:"live"`
	By       *string `json:"by"` // who has changed what is live, and when; nil: the audit trail does not know
	At       *string `json:"at"`
	Proposed any     `json:"proposed"`
}

// An Approval says that somebody other than its authors has read a proposal, and wants it applied.
type Approval struct {
	Key       string `json:"key"`
	By        string `json:"by"` // Name <address>
	CreatedAt string `json:"createdAt"`
	Counts    bool   `json:"counts"` // the key may still write to all that the proposal touches
}

// A ProposalCommit is a commit of a proposal.
type ProposalCommit struct {
	Commit    string `json:"commit"`
	Author    string `json:"author"`
	CreatedAt string `json:"createdAt"`
	Message   string `json:"message"`
}

// A Refusal is an error that a call would have.
type Refusal struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Details []Detail `json:"details,omitempty"`
}

const proposals = "/api/platform/proposals"

// Proposals lists the open proposals.
func (c *Client) Proposals(ctx context.Context) (list []Proposal, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, proposals, nil, &list)
	return list, err
}

// Proposal returns one open proposal.
func (c *Client) Proposal(ctx context.Context, name string) (p ProposalLook, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, proposalPath(name, "", ""), nil, &p)
	return p, err
}

// ApplyProposal makes a proposal live and returns the commit of the branch. seen is the proposal's last commit that the
// caller has decided about; if it has another one by now, nothing is applied. "": whatever it has. comment is kept in the
// message of the merge; "": none.
func (c *Client) ApplyProposal(ctx context.Context, name, seen, comment string) (commit string, err error) {
	var applied struct{ Commit string }
	var body any
	if comment != "" {
		body = map[string]string{"comment": comment}
	}
	_, err = c.platform.call(ctx, http.MethodPost, proposalPath(name, "/apply", seen), body, &applied)
	return applied.Commit, err
}

// UpdateProposal takes the values of a proposal that conflicts onto what is live, and returns its new last commit. seen
// is that of ApplyProposal.
func (c *Client) UpdateProposal(ctx context.Context, name, seen string) (commit string, err error) {
	var updated struct{ Commit string }
	_, err = c.platform.call(ctx, http.MethodPost, proposalPath(name, "/update", seen), nil, &updated)
	return updated.Commit, err
}

// ApproveProposal approves of a proposal as it is, and returns all approvals of its last commit, and how many it needs.
// seen is that of ApplyProposal.
func (c *Client) ApproveProposal(ctx context.Context, name, seen string) (list []Approval, needed int, err error) {
	var answer struct {
		Approvals       []Approval
		ApprovalsNeeded int
	}
	_, err = c.platform.call(ctx, http.MethodPost, proposalPath(name, "/approve", seen), nil, &answer)
	return answer.Approvals, answer.ApprovalsNeeded, err
}

// DropProposal removes a proposal. seen is that of ApplyProposal.
func (c *Client) DropProposal(ctx context.Context, name, seen string) error {
	_, err := c.platform.call(ctx, http.MethodDelete, proposalPath(name, "", seen), nil, nil)
	return err
}

func proposalPath(name, rest, seen string) string {
	path := proposals + "/" + url.PathEscape(name) + rest
	if seen != "" {
		path += "?commit=" + url.QueryEscape(seen)
	}
	return path
}
