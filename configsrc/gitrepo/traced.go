package gitrepo

import (
	"time"

	"fingerpost/resolver/trace"
)

// stepOf begins a step with writes of which some are traced, and returns a function that ends it. A commit and a push may
// have many writes: the step is in the trace of each.
func (r *Repo) stepOf(writes []*pendingWrite, name string) (end func(commit string, err error)) {
	var spans []*trace.Span
	if r.o.Trace != nil {
		for _, w := range writes {
			id, _ := trace.ParseParent([]byte(w.Trace))
			if span := r.o.Trace.Begin(id, trace.Internal, name, time.Now()); span != nil {
				spans = append(spans, span)
			}
		}
	}
	return func(commit string, err error) {
		for _, span := range spans {
			if commit != "" {
				span.Set("vcs.ref.head.revision", commit)
			}
			span.EndWith(err)
		}
	}
}
