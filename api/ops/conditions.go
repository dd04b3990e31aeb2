package ops

import (
	"fmt"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/api/console/say"
	"fingerpost/configsrc"
	"fingerpost/resolver/records"
)

// Facts are parts of the node that know something of its state that ops does not ask for itself.
type Facts interface {
	// AddFacts adds what the part knows to a state.
	AddFacts(s *conditions.State)
}

// State collects everything that is known of the node, for the judgement of package conditions.
func (o *Server) State() *conditions.State {
	reason, degraded := o.Resolver.Degraded()
	if degraded && reason == "" {
		reason = "it has failed"
	}
	s := &conditions.State{Time: time.Now(), NotReady: !o.ready.Load(), Store: reason, Unaudited: !o.Resolver.Auditable(),
		DiskUsed: 1 - o.Readings.diskFree(), Certificate: o.Readings.certificateEnd(), Files: filesState(o.Config.Status())}
	if !o.Resolver.NextKeyEnd(s.Time).IsZero() {
		for _, k := range o.Resolver.Keys().All() {
			s.Keys = append(s.Keys, conditions.Key{Name: k.Name, Ends: k.ExpiresAt})
		}
	}
	for _, p := range o.secretStatus() {
		s.Secrets = append(s.Secrets, conditions.Secret{ProjectID: p.ProjectID, Project: p.Project, Field: p.Field,
			Message: p.Message, Works: p.Severity == "warning"})
	}
	for _, g := range o.auditStatus().Gaps {
		s.AuditGaps = append(s.AuditGaps, conditions.Gap{Found: g.Found, Reason: "the damaged ledger is in " + g.MovedTo})
	}
	if o.Git != nil {
		git := o.Git()
		s.Git = conditions.Git{Errors: git.Errors(), Conflict: git.Conflict, Behind: git.Behind,
			Overruled: len(git.Overruled)}
	}
	if o.Mail != nil {
		o.addMail(s)
	}
	for _, part := range []Facts{o.Cluster, o.Readings.Domains, o.Readings.Webhooks, o.Readings.Senders,
		o.Readings.Inbound} {
		if part != nil {
			part.AddFacts(s)
		}
	}
	return s
}

func (o *Server) addMail(s *conditions.State) {
	counts := o.Mail.Counts()
	s.MailRoom = counts.LowDisk
	if counts.Oldest != 0 {
		s.MailWaits = s.Time.Sub(records.MailTime(counts.Oldest))
	}
	stopped := o.Mail.Stopped()
	s.MoreStopped = max(0, len(stopped)-maxStopped)
	for _, x := range stopped[:min(len(stopped), maxStopped)] {
		if p, err := o.Resolver.ProjectByID(x.ProjectID); err == nil { // else it is gone, and its mail ends
			s.Stopped = append(s.Stopped, conditions.Stopped{Project: x.ProjectID, Slug: p.Slug, Name: p.Name,
				Code: string(x.Code), Why: say.ReasonOf(string(x.Code)).Why, Waiting: x.Waiting, Since: x.Since})
		}
	}
	for _, g := range o.Resolver.MailGaps() {
		if !g.Complete {
			s.MailGaps = append(s.MailGaps, conditions.Gap{Found: g.Found, Reason: g.Reason})
		}
	}
}

// filesState is what is known of the config files.
func filesState(st configsrc.Status) conditions.Files {
	f := conditions.Files{Errors: st.Errors, Warnings: st.Warnings, Quarantined: st.Quarantined,
		FirstError: first(&st, "error"), FirstWarning: first(&st, "warning"), Error: st.Error, LastSuccess: st.LastSuccess,
		LowDisk: st.LowDisk}
	if h := st.Held; h != nil {
		f.Held = &conditions.Held{Reason: h.Reason, Projects: h.Projects, Domains: h.Domains, Since: h.Since}
	}
	return f
}

// first is the first problem of a severity, with its line.
func first(st *configsrc.Status, severity string) string {
	for _, p := range st.Problems {
		if fmt.Sprint(p.Severity) != severity {
			continue
		}
		if p.File == "" {
			return p.Summary
		}
		return fmt.Sprintf("%s:%d: %s", p.File, p.Start.Line, p.Summary)
	}
	return ""
}
