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
// caller has decided about; if it has another one by now, nothing is applied. "": whatever it has.
func (c *Client) ApplyProposal(ctx context.Context, name, seen string) (commit string, err error) {
	var applied struct{ Commit string }
	_, err = c.platform.call(ctx, http.MethodPost, proposalPath(name, "/apply", seen), nil, &applied)
	return applied.Commit, err
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
