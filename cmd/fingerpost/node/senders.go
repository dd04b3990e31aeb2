package node

import (
	"context"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/mailer/sender"
)

// openSenders makes the checks of senders, which ask with the bounds of the checks of domains. A node that may not write
// makes none.
func (o *opening) openSenders(context.Context) error {
	options := sender.Options{Projects: o.resolver, Ledger: o.resolver, Logger: o.o.Logger}
	if dns := o.dns; dns != nil {
		options.Lookup = func(ctx context.Context, project string, limit time.Duration) (sender.DNS, func()) {
			return dns.Lookup(ctx, project, limit)
		}
	}
	o.senders = sender.New(options)
	return nil
}

// runSenders checks senders until ctx ends.
func (n *service) runSenders(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		n.senders.Run(ctx)
		return nil
	})
}

// senderFacts is what the rest of the node sees of the checks.
type senderFacts struct{ *sender.Service }

// AddFacts implements ops.Facts.
func (f senderFacts) AddFacts(s *conditions.State) {
	worse, more := f.WorseOnes(100)
	for _, w := range worse {
		s.Senders = append(s.Senders, conditions.Sender{Project: w.Project, Slug: w.Slug, Is: w.Is, Since: w.Since})
	}
	s.MoreSenders = more
}
