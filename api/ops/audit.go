package ops

import "time"

// An auditStatus is the audit trail in the document of /status.
type auditStatus struct {
	Gaps []auditGap `json:"gaps"` // where damage has cut the trail; at most maxAuditGaps
}

// An auditGap says which entries were lost when a damaged ledger was salvaged.
type auditGap struct {
	Project   string    `json:"project"`   // its slug, "" where it is gone or the entries belong to none
	ProjectID int64     `json:"projectId"` // 0: of the entries that belong to no project
	After     int64     `json:"after"`     // the last entry before those that are lost; 0: there is none
	Any       bool      `json:"any"`       // part of it could not be read at all: any chain may lack entries
	Found     time.Time `json:"found"`
	MovedTo   string    `json:"movedTo"` // the damaged ledger: a name in the data directory
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
		gap := auditGap{ProjectID: g.Project, After: g.After, Any: g.Any, Found: g.Found, MovedTo: g.MovedTo}
		if p, err := o.Resolver.ProjectByID(g.Project); err == nil {
			gap.Project = p.Slug
		}
		s.Gaps = append(s.Gaps, gap)
	}
	return s
}
