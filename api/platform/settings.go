package platform

import (
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

func (a *API) getServiceSettings(r *web.Request, project *catalog.Project) error {
	return web.AnswerSingle(r, project, "service settings found",
		a.State.ServiceSettings, rowjson.AppendServiceSettings, rowjson.ServiceSettingsETag)
}

func (a *API) getAuthSettings(r *web.Request, project *catalog.Project) error {
	return web.AnswerSingle(r, project, "auth settings found",
		a.State.AuthSettings, rowjson.AppendAuthSettings, rowjson.AuthSettingsETag)
}

// The fields of settings in a request.
var (
	serviceNames = catalog.RequestNames(new(catalog.ServiceSettings).Fields())
	authNames    = catalog.RequestNames(new(catalog.AuthSettings).Fields())
)

// updateServiceSettings answers PUT /projects/{id}/service-settings.
func (a *API) updateServiceSettings(r *web.Request, project *catalog.Project) error {
	f, err := r.ReadForm(serviceNames)
	if err != nil {
		return err
	}
	trial := catalog.NewServiceSettings()
	f.Fill(trial.Fields(), serviceNames...)
	if err := f.Validated(trial.Validate()); err != nil {
		return err
	}
	now, err := a.State.ServiceSettings(project.ID)
	if err == nil {
		err = r.Matches(rowjson.ServiceSettingsETag(project.ID, now))
	}
	if err != nil {
		return err
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if err := r.Matches(rowjson.ServiceSettingsETag(p.Project.ID, &p.Service)); err != nil {
			return err
		}
		f.Fill(p.Service.Fields(), serviceNames...)
		return nil
	})
	if err != nil {
		return err
	}
	if now, err = a.State.ServiceSettings(project.ID); err != nil {
		return err
	}
	r.SucceedWritten("service settings updated",
		rowjson.AppendServiceSettings(nil, project.ID, now), rowjson.ServiceSettingsETag(project.ID, now))
	return nil
}

// updateAuthSettings answers PUT /projects/{id}/auth-settings. If the body has registrationMode without
// approvalRequired or inviteOnly, those two are set to fit the mode.
func (a *API) updateAuthSettings(r *web.Request, project *catalog.Project) error {
	f, err := r.ReadForm(authNames)
	if err != nil {
		return err
	}
	trial := catalog.NewAuthSettings()
	f.Fill(trial.Fields(), authNames...)
	if err := f.Validated(trial.Validate()); err != nil {
		return err
	}
	now, err := a.State.AuthSettings(project.ID)
	if err == nil {
		err = r.Matches(rowjson.AuthSettingsETag(project.ID, now))
	}
	if err != nil {
		return err
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if err := r.Matches(rowjson.AuthSettingsETag(p.Project.ID, &p.Auth)); err != nil {
			return err
		}
		if f.Has("registrationMode") {
			p.Auth.ApprovalRequired = trial.RegistrationMode == catalog.RegistrationApprovalRequired
			p.Auth.InviteOnly = trial.RegistrationMode == catalog.RegistrationInviteOnly
		}
		f.Fill(p.Auth.Fields(), authNames...)
		return nil
	})
	if err != nil {
		return err
	}
	if now, err = a.State.AuthSettings(project.ID); err != nil {
		return err
	}
	r.SucceedWritten("auth settings updated",
		rowjson.AppendAuthSettings(nil, project.ID, now), rowjson.AuthSettingsETag(project.ID, now))
	return nil
}
