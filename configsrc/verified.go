package configsrc

import (
	"context"
	"fmt"

	"fingerpost/resolver/catalog"
)

// SetVerified writes what name servers say about a domain into its block: verified becomes to, the day (UTC) of a proof
// or catalog.VerifiedLost. It is a write like those of clients, with a commit, and an audit entry catalog.AuditVerify or
// catalog.AuditLost by catalog.DoorDNS without an actor; reason says to people why a proof is lost.
//
// People win: from is the value that the caller has decided by, "" for none, and the file decides whether it still
// holds, also while somebody saves the file or a client writes. If it does not, the error is a *catalog.Error CONFLICT;
// if the project or the domain is gone, NOT_FOUND. Then the caller starts from what the files have by then. A node that
// does not write (--read-only, an edge) answers CONFIG_READ_ONLY. All other errors, those of Write, are passing: the
// same call may succeed later. Whatever the error, nothing was changed.
//
// Run must be running. It may be called from any goroutine, and waits for its turn at the file as long as ctx lets it.
func (s *Source) SetVerified(ctx context.Context, project catalog.UUID, domain, from, to, reason string) error {
	if s.base.o.ReadOnly || s.base.o.Follow {
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node does not write the files"}
	}
	message := "domain " + domain + " is proven"
	switch to {
	case catalog.VerifiedLost:
		message = "domain " + domain + " has lost its proof"
		if reason != "" {
			message += ": " + reason
		}
	default:
		if msg := catalog.CheckVerified(to, s.base.Rules().Today); msg != "" || to == catalog.VerifiedPending {
			return fmt.Errorf("set verified of %s to %q: it must be %q or a day of the past", domain, to, catalog.VerifiedLost)
		}
	}
	change := func(p *catalog.ProjectConfig) error {
		for i := range p.Domains {
			d := &p.Domains[i]
			if d.Name != domain {
				continue
			}
			if is := d.Verified; is == nil && from != "" || is != nil && *is != from {
				return &catalog.Error{Code: catalog.CodeConflict, Message: "verified of " + domain + " has changed meanwhile"}
			}
			d.Verified = &to
			return nil
		}
		return catalog.NotFound("domain")
	}
	// By the id the trail names the commit, and a restart recognizes a write that was made.
	by := catalog.Author{Door: catalog.DoorDNS, Reason: reason, RequestID: catalog.NewUUID().String()}
	_, err := s.Write(ctx, &catalog.Edit{By: by, Message: message,
		Project: &catalog.ProjectEdit{UUID: project, Change: change}})
	return err
}
