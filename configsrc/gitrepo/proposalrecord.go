package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// Bounds of open proposals.
const (
	maxProposalsOfKey = 20
	maxProposals      = 200
)

// A ProposalKey is an API key that has written to a proposal, or a person who has. A key that is made again under the name
// has another id, and is another key.
type ProposalKey struct {
	ID      string
	Name    string // then
	Limited bool   // it was limited to projects then
	// Person is the person who has signed in at a login; a key of the files has none.
	Person *ProposalPerson `json:",omitempty"`
}

// A ProposalPerson is somebody who has signed in at a login, with the values of claims for which rules matched at the
// last write.
type ProposalPerson struct {
	Login, Issuer, Subject string
	Claims                 []catalog.ClaimValue
}

// SameHolder reports whether k and other are one key, or the old and new keys of its rotations (catalog.Key.SameHolder).
func (k ProposalKey) SameHolder(other ProposalKey) bool {
	a, b := catalog.Key{ID: k.ID, Name: k.Name}, catalog.Key{ID: other.ID, Name: other.Name}
	return a.SameHolder(&b)
}

// Wrote reports whether a key, or the same holder's key before or after a rotation, is among the keys that have written
// to a proposal.
func (k ProposalKey) Wrote(keys []ProposalKey) bool { return slices.ContainsFunc(keys, k.SameHolder) }

// A proposalRecord is what the ledger keeps of a proposal: who has written to it, and who has approved of it. Trailers of
// commits say the same, but everybody can write those.
type proposalRecord struct {
	Keys    []ProposalKey // the maker first
	Written time.Time
	// Tips are the branch's last commit before the last write, if any, and the one that the write has made. A crash may
	// have come before the branch moved.
	Tips      []string
	Approvals []Approval `json:",omitempty"` // see approvalsOf
}

// recordOf returns the record of the proposal whose branch ends in tip; nil: a person has made the branch.
func (r *Repo) recordOf(ctx context.Context, name, tip string) (*proposalRecord, error) {
	all, err := r.o.Ledger.ProposalRecords()
	if err != nil || all[name] == nil {
		return nil, err
	}
	record := new(proposalRecord)
	if err := json.Unmarshal(all[name], record); err != nil {
		return nil, fmt.Errorf("the record of the proposal %s: %w", name, err)
	}
	if slices.Contains(record.Tips, tip) {
		return record, nil
	}
	for _, t := range record.Tips { // a person has added to it
		if ahead, err := r.git.IsAncestor(ctx, t, tip); err == nil && ahead {
			return record, nil
		}
	}
	return nil, nil
}

// noteProposal records that a key writes to a proposal, before its branch moves.
func (r *Repo) noteProposal(ctx context.Context, name, tip, made string, by ProposalKey) error {
	record := &proposalRecord{}
	if tip != "" {
		known, err := r.recordOf(ctx, name, tip)
		if err != nil {
			return err
		}
		if known != nil {
			record = known
		} else {
			record.Keys = []ProposalKey{{}} // a person has made it
		}
		record.Tips, record.Approvals = []string{tip}, record.approvalsOf(tip) // the branch may not move
	}
	switch i := slices.IndexFunc(record.Keys, func(k ProposalKey) bool { return k.ID == by.ID }); {
	case i < 0:
		record.Keys = append(record.Keys, by)
	default:
		record.Keys[i].Limited, record.Keys[i].Person = record.Keys[i].Limited || by.Limited, by.Person
	}
	record.Tips, record.Written = append(record.Tips, made), time.Now().UTC()
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return r.o.Ledger.ChangeProposals(map[string][]byte{name: b})
}

// mayOpen returns RATE_LIMITED if the key with an id may not open another proposal. The caller holds work.
func (r *Repo) mayOpen(ctx context.Context, key string) error {
	names, err := r.proposalNames(ctx)
	if err == nil && len(names) >= maxProposalsOfKey { // else nothing can be too much
		names, err = r.withoutMerged(ctx, names)
	}
	if err != nil {
		return err
	}
	if len(names) >= maxProposals {
		return &catalog.Error{Code: catalog.CodeRateLimited,
			Message: fmt.Sprintf("%d proposals are open, and no more are allowed; apply or drop some first", len(names))}
	}
	all, err := r.o.Ledger.ProposalRecords()
	if err != nil {
		return err
	}
	n := 0
	for _, name := range names {
		var record proposalRecord
		if all[name] != nil && json.Unmarshal(all[name], &record) == nil && record.Keys[0].ID == key {
			n++
		}
	}
	if n >= maxProposalsOfKey {
		return &catalog.Error{Code: catalog.CodeRateLimited,
			Message: fmt.Sprintf("this key has %d open proposals, and no more are allowed; apply or drop some first", n)}
	}
	return nil
}

// withoutMerged leaves out the branches that HEAD has. The caller holds work.
func (r *Repo) withoutMerged(ctx context.Context, names []string) (open []string, err error) {
	h, err := r.head(ctx)
	if err != nil && !errors.Is(err, errDetached) {
		return nil, err
	}
	for _, name := range names {
		tip, err := r.git.Ref(proposePrefix + name)
		if err != nil {
			return nil, err
		}
		if merged, err := r.isMerged(ctx, h, name, tip); err != nil {
			return nil, err
		} else if !merged && tip != "" {
			open = append(open, name)
		}
	}
	return open, nil
}
