package node

import (
	"context"

	"fingerpost/api/conditions"
	"fingerpost/mailer/inbound"
)

// openInbound makes what takes the outcomes that providers tell. An edge checks their secrets before it forwards them.
func (o *opening) openInbound(context.Context) error {
	o.inbound = inbound.New(inbound.Options{Blocks: o.resolver.Inbounds, Secrets: o.secrets.OpenInbound,
		Ledger: o.resolver, Projects: o.resolver, Logger: o.o.Logger})
	return nil
}

// runInbound forgets marks of outcomes until ctx ends, on the node that writes.
func (n *service) runInbound(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		if !n.cluster.isEdge() && !n.o.Files.ReadOnly {
			n.inbound.Run(ctx)
		}
		return nil
	})
}

// inboundFacts is what the rest of the node sees of the outcomes.
type inboundFacts struct{ *inbound.Desk }

// AddFacts implements ops.Facts.
func (f inboundFacts) AddFacts(s *conditions.State) {
	for _, t := range f.Troubles() {
		s.Inbound = append(s.Inbound, conditions.Inbound{Name: t.Block, Closed: t.Closed, Dropped: t.Dropped,
			Full: t.Full, ListFull: t.ListFull})
	}
}
