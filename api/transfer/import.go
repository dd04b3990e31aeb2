package transfer

import (
	"context"
	"fmt"
	"slices"

	"fingerpost/api/client"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// The files of what belongs to no project: default templates, and webhooks. No slug has an underscore.
const (
	templatesFile = "_templates.hcl"
	webhooksFile  = "_webhooks.hcl"
)

// An Import is the configuration of a server, or of a table, as files. ReadServer makes one, or NewImport and Add do;
// Place compares it with the folder, Write writes it.
type Import struct {
	// Problems are why nothing can be written.
	Problems []string

	maxFileBytes int
	defaults     *catalog.Defaults // of the folder
	files        map[string][]byte
	slugs        map[string]bool
	owner        map[string]string // domain → slug
	secrets      []string
	cover        coverage
	foreign      []string // ids that files cannot pin
	notKept      []string // what the files lack of the server

	placed         []ImportedFile
	todo, replaced map[string][]byte // what is to be written, and what it replaces
}

// NewImport returns an Import without files. defaults is the folder's defaults block, or nil: projects need not repeat
// its values. No file may be larger than maxFileBytes.
func NewImport(defaults *catalog.Defaults, maxFileBytes int) *Import {
	return &Import{maxFileBytes: maxFileBytes, defaults: defaults, files: map[string][]byte{}, slugs: map[string]bool{},
		owner: map[string]string{}}
}

// ReadServer reads all projects and makes the contents of their files, and of one for the default templates, see
// NewImport, and of one for the webhooks, whose secrets no call tells. The caller checks Problems.
func ReadServer(ctx context.Context, c *client.Client, defaults *catalog.Defaults, maxFileBytes, parallel int,
	progress Progress) (*Import, error) {
	im := NewImport(defaults, maxFileBytes)
	projects, err := c.Projects(ctx)
	if err != nil {
		return nil, err
	}
	pairs := pairUp(projects, nil)
	err = client.InOrder(ctx, parallel, len(pairs), readPairs(c, pairs), func(i int, f *client.Project) error {
		progress.set(i+1, len(pairs))
		im.cover.add(f)
		im.project(fmt.Sprintf("project %d (%s)", f.Project.ID, hcledit.Quote(f.Project.Slug)), f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(im.cover.shared) > 0 {
		im.shared(im.cover.shared)
	}
	im.notKept = im.lost()
	webhooks, told, err := c.DeclaredWebhooks(ctx)
	switch {
	case err != nil:
		return nil, err
	case !told:
		im.notKept = append(im.notKept, webhooksUntold)
	default:
		im.webhooks(webhooks)
	}
	return im, nil
}

// Add adds a project that no server has: its settings are those in force. uuid is its own: one that follows from the slug
// would be that of an earlier project whose slug is used again. who names it in Problems. It takes ownership of domains.
func (im *Import) Add(who string, uuid catalog.UUID, project catalog.Project, domains []catalog.Domain) {
	p := catalog.ProjectConfig{Project: project, Domains: domains, Service: catalog.NewServiceSettings(),
		Auth: catalog.NewAuthSettings()}
	p.Service, p.Auth = im.defaults.InForce(&p)
	p.Project.UUID = uuid
	p.Project.ID = catalog.DeriveID(catalog.KindProject, p.Project.UUID)
	for i := range domains {
		d := &domains[i]
		d.UUID = catalog.DeriveDomainUUID(p.Project.UUID, d.Name)
		d.ID = catalog.DeriveID(catalog.KindDomain, d.UUID)
	}
	im.project(who, &client.Project{ProjectConfig: p})
}

func (im *Import) problem(format string, args ...any) {
	im.Problems = append(im.Problems, fmt.Sprintf(format, args...))
}

// project makes a project's file, or records why it cannot.
func (im *Import) project(who string, f *client.Project) {
	before := len(im.Problems)
	for _, text := range f.Odd {
		im.problem("%s: %s", who, text)
	}
	p := &f.ProjectConfig
	im.report(who, p.Project.Validate())
	if im.slugs[p.Project.Slug] {
		im.problem("%s: another project of the server has this slug, too", who)
	}
	im.slugs[p.Project.Slug] = true
	im.identify(p)
	im.domains(who, f)
	im.report(who+": auth settings", p.Auth.Validate())
	im.report(who+": service settings", p.Service.Validate())
	im.fillSecrets(f)
	if p.SMTP != nil {
		im.report(who+": SMTP config", p.SMTP.Validate())
	}
	im.templates(who, f)
	if len(im.Problems) > before {
		return
	}
	im.unsaid(f)
	content, err := hcledit.WriteProject(p, im.defaults)
	switch {
	case err != nil:
		im.problem("%s: %v", who, err)
	case len(content) > im.maxFileBytes:
		im.problem("%s: its file would have %d bytes, %d are allowed", who, len(content), im.maxFileBytes)
	default:
		im.files[p.Project.Slug+".hcl"] = content
	}
}

func (im *Import) report(who string, ps catalog.Problems) {
	for _, p := range ps {
		if !p.Warning {
			im.problem("%s: %s %s", who, p.Path, p.Message)
		}
	}
}

// unsaid lets a project follow the folder's defaults block in what the server did not return.
func (im *Import) unsaid(f *client.Project) {
	if im.defaults == nil {
		return
	}
	follow := func(kind catalog.Kind, fields, defaults []catalog.Field) {
		told := client.Fields(kind)
		if f.Flat {
			told = append(told, client.FlatFields(kind)...)
		}
		for i := range fields {
			secret, is := fields[i].Value.(*catalog.Secret)
			if !slices.Contains(told, fields[i].Name) && (!is || secret.Source == catalog.SecretNone) {
				fields[i].Set(defaults[i])
			}
		}
	}
	service, auth := catalog.NewServiceSettings().Over(im.defaults.Service),
		catalog.NewAuthSettings().Over(im.defaults.Auth)
	follow(catalog.KindServiceSettings, f.Service.Fields(), service.Fields())
	follow(catalog.KindAuthSettings, f.Auth.Fields(), auth.Fields())
}
