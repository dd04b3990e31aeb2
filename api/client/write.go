package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// CreateProject makes a project with name, slug, description, labels and owner, and returns it as the server has it. The
// server chooses all other fields.
func (c *Client) CreateProject(ctx context.Context, p *catalog.Project) (catalog.Project, error) {
	x, err := write(ctx, c.platform, http.MethodPost, projectsPath, p.AllFields(),
		[]string{"name", "slug", "description"}, ownBody(p.Fields(), false))
	if err != nil {
		return catalog.Project{}, err
	}
	return x.project()
}

// UpdateProject replaces a project's own fields, slug and status among them. It removes all labels, or the owner, only if
// full says that the server's are known.
func (c *Client) UpdateProject(ctx context.Context, id int64, p *catalog.Project, full bool) error {
	_, err := write(ctx, c.platform, http.MethodPut, projectPath(id, ""), p.AllFields(), projectFields,
		ownBody(p.Fields(), full))
	return err
}

// DeleteProject removes a project and all that belongs to it.
func (c *Client) DeleteProject(ctx context.Context, id int64) error {
	_, err := c.platform.call(ctx, http.MethodDelete, projectPath(id, ""), nil, nil)
	return err
}

// PutServiceSettings replaces the service settings of a project.
func (c *Client) PutServiceSettings(ctx context.Context, project int64, s *catalog.ServiceSettings) error {
	_, err := write(ctx, c.platform, http.MethodPut, projectPath(project, "/service-settings"), s.Fields(), serviceFields,
		nil)
	return err
}

// PutAuthSettings replaces the auth settings of a project.
func (c *Client) PutAuthSettings(ctx context.Context, project int64, s *catalog.AuthSettings) error {
	_, err := write(ctx, c.platform, http.MethodPut, projectPath(project, "/auth-settings"), s.Fields(), authFields, nil)
	return err
}

// CreateDomain adds a domain to a project.
func (c *Client) CreateDomain(ctx context.Context, project int64, d *catalog.Domain) error {
	return c.domain(ctx, http.MethodPost, projectPath(project, "/domains"), d, false)
}

// UpdateDomain replaces the domain with this id, its name included. It removes certificates and proof only if full says
// that the server's values are known.
func (c *Client) UpdateDomain(ctx context.Context, project, id int64, d *catalog.Domain, full bool) error {
	return c.domain(ctx, http.MethodPut, projectPath(project, "/domains/"+strconv.FormatInt(id, 10)), d, full)
}

func (c *Client) domain(ctx context.Context, method, path string, d *catalog.Domain, full bool) error {
	_, err := write(ctx, c.platform, method, path, d.AllFields(), domainFields, ownBody(d.Fields(), full))
	return err
}

// DeleteDomain removes a domain.
func (c *Client) DeleteDomain(ctx context.Context, project, id int64) error {
	return remove(ctx, c.platform, projectPath(project, "/domains/"+strconv.FormatInt(id, 10)), "a domain")
}

// PutSMTP replaces the SMTP config of a project. secrets are its secrets in clear text, by field; those that it lacks
// stay as the service has them.
func (c *Client) PutSMTP(ctx context.Context, project int64, s *catalog.SMTPConfig, secrets map[string]string) error {
	more := make(map[string]any, len(secrets))
	for name, text := range secrets {
		more[name] = text
	}
	return c.save(ctx, mailPath(project, "/smtp-config"), s.Fields(), smtpFields, more)
}

// DeleteSMTP removes the SMTP config of a project.
func (c *Client) DeleteSMTP(ctx context.Context, project int64) error {
	return remove(ctx, c.mail, mailPath(project, "/smtp-config"), "an SMTP config")
}

// PutTemplate creates or replaces the template with t's code. A MaxAge of "" and Locales of nil are not sent: the service
// may not know them.
func (c *Client) PutTemplate(ctx context.Context, project int64, t *catalog.Template) error {
	names := slices.DeleteFunc(slices.Clone(templateFields), func(name string) bool {
		return name == "maxAge" && t.MaxAge == "" || name == "locales" && t.Locales == nil
	})
	return c.save(ctx, mailPath(project, "/templates"), t.AllFields(), names, nil)
}

// DeleteTemplate removes a template of a project.
func (c *Client) DeleteTemplate(ctx context.Context, project, id int64) error {
	return remove(ctx, c.mail, templatePath(project, id), "a template")
}

// remove deletes one object of a project.
func remove(ctx context.Context, s *service, path, what string) error {
	_, err := s.call(ctx, http.MethodDelete, path, nil, nil)
	if Absent(err) {
		return fmt.Errorf("the server has no call that removes %s, or it is gone already: %w", what, err)
	}
	return err
}

// save creates or replaces an object. Services differ in the method.
func (c *Client) save(ctx context.Context, path string, fields []catalog.Field, names []string,
	more map[string]any) error {
	_, err := write(ctx, c.mail, http.MethodPut, path, fields, names, more)
	if Absent(err) {
		_, err = write(ctx, c.mail, http.MethodPost, path, fields, names, more)
	}
	return err
}

// write sends the named fields and compares them with the server's answer.
func write(ctx context.Context, s *service, method, path string, fields []catalog.Field, names []string,
	more map[string]any) (row, error) {
	body := map[string]any{}
	for k, v := range more {
		body[k] = v
	}
	for _, f := range fields {
		if slices.Contains(names, f.Name) {
			body[f.Name] = f.Value
		}
	}
	var x row
	if _, err := s.call(ctx, method, path, body, &x); err != nil {
		return nil, err
	}
	var kept []string
	for _, f := range fields {
		if raw, told := x[f.Name]; told && slices.Contains(names, f.Name) && !sameJSON(raw, f.Value) {
			kept = append(kept, catalog.Snake(f.Name))
		}
	}
	if kept != nil {
		return x, &IgnoredError{kept}
	}
	return x, nil
}

// sameJSON reports whether a field of an answer is what was sent; some forms of the API write enums in lower case. A
// value that cannot be read counts as the same: it does not show whether the field was taken over.
func sameJSON(raw json.RawMessage, sent any) bool {
	got := reflect.New(reflect.TypeOf(sent).Elem())
	if json.Unmarshal(raw, got.Interface()) != nil || reflect.DeepEqual(got.Interface(), sent) {
		return true
	}
	a, isText := got.Interface().(*string)
	return isText && strings.EqualFold(*a, *sent.(*string))
}
