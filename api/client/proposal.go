package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// A Proposal is a change that is not live.
type Proposal struct {
	Name       string          `json:"name"`
	Branch     string          `json:"branch"`
	Commit     string          `json:"commit"`
	Author     string          `json:"author"`
	Key        *string         `json:"key"` // that made it; nil if its first commit names none
	Mergeable  bool            `json:"mergeable"`
	CreatedAt  string          `json:"createdAt"`
	CompareURL *string         `json:"compareUrl"`
	Plan       json.RawMessage `json:"plan"` // as "plan --json"
}

const proposals = "/api/platform/proposals"

// Proposals lists the open proposals.
func (c *Client) Proposals(ctx context.Context) (list []Proposal, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, proposals, nil, &list)
	return list, err
}

// ApplyProposal makes a proposal live and returns the commit.
func (c *Client) ApplyProposal(ctx context.Context, name string) (commit string, err error) {
	var applied struct{ Commit string }
	_, err = c.platform.call(ctx, http.MethodPost, proposals+"/"+url.PathEscape(name)+"/apply", nil, &applied)
	return applied.Commit, err
}

// DropProposal removes a proposal.
func (c *Client) DropProposal(ctx context.Context, name string) error {
	_, err := c.platform.call(ctx, http.MethodDelete, proposals+"/"+url.PathEscape(name), nil, nil)
	return err
}
