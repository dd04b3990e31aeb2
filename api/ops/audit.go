package ops

import "fingerpost/resolver/records"

// An auditStatus is the audit trail in the document of /status.
type auditStatus struct {
	Gaps []auditGap `json:"gaps"` // where damage has cut the trail; at most maxAuditGaps
}

type auditGap struct {
	Slug string `json:"project"` // "" where the project is gone, or the entries belong to none
	records.AuditGap
}

// maxAuditGaps bounds how many gaps /status names.
const maxAuditGaps = 100

func (o *Server) auditStatus() auditStatus {
	s := auditStatus{Gaps: []auditGap{}}
	gaps, err := o.Resolver.AuditGaps()
	if err != nil {
		return s // the store says why the ledger cannot be read
	}
	for _, g := range gaps[:min(len(gaps), maxAuditGaps)] {
		gap := auditGap{AuditGap: g}
		if p, err := o.Resolver.ProjectByID(g.Project); err == nil {
			gap.Slug = p.Slug
		}
		s.Gaps = append(s.Gaps, gap)
	}
	return s
}
