package platform

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// takeOver answers a claim to the very name of another project, by a key that is limited to projects: if that project's
// record is pending and was made by such a key, and DNS has the proof of this one, the domain changes hands. Else it
// returns the conflict, with the records that would prove the name.
func (a *API) takeOver(r *web.Request, project *catalog.Project, name string, add func(*catalog.ProjectConfig) error,
	conflict *catalog.Error) error {
	taken, err := a.State.DomainNamed(name)
	if err != nil || r.Key.EveryProject() || a.Verifier == nil || taken.ProjectID == project.ID {
		return conflict
	}
	free, err := names.Unproven(a.State, taken)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), CheckTime)
	defer cancel()
	records, proven := a.Verifier.Claim(ctx, dcv.Subject{Project: project.UUID, Name: name}, free && !a.proposes)
	if records == nil {
		return conflict
	}
	if proven {
		loser, err := a.State.ProjectByID(taken.ProjectID)
		if err != nil {
			return err
		}
		err = a.Writer.Write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: project.UUID, Change: add},
			Takes: &catalog.Takeover{From: loser.UUID, Domain: name, Verified: time.Now().UTC().Format(time.DateOnly),
				Reason: "another project has proven the domain, and this one never has"}})
		if e := (*catalog.Error)(nil); !errors.As(err, &e) || e.Code != catalog.CodeConflict {
			return err
		}
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	e := *conflict
	e.Problems = append(catalog.Problems{}, e.Problems...)
	if len(e.Problems) > 0 {
		e.Problems[0].Records = text
	}
	return &e
}
