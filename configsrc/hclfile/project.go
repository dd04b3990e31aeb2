package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// project reads one project block with its nested blocks.
func (d *decoder) project(block *hclsyntax.Block) {
	slug, slugRange := d.label(block, projectSchema)
	config := catalog.ProjectConfig{
		Project: catalog.Project{Slug: slug, Status: catalog.StatusDraft},
		Service: catalog.NewServiceSettings(),
		Auth:    catalog.NewAuthSettings(),
	}
	p := &config.Project
	var written identity
	c := d.attributes(block, projectSchema, append(p.Fields(), written.fields()...))
	p.UUID, p.ID = d.identify(c, catalog.KindProject, written, catalog.DeriveProjectUUID(slug), slug)
	d.validated(c, p.Validate(), "slug")
	if slug != "" {
		d.once(claim{"project", slug}, slugRange, "project "+Quoted(slug)+" is declared twice",
			"a slug belongs to one project")
	}
	d.place(catalog.KindProject, slug, 0, block)

	// The settings exist even without a block.
	service, auth := &config.Service, &config.Auth
	service.UUID = catalog.DeriveUUID(catalog.KindServiceSettings, p.UUID)
	service.ID = catalog.DeriveID(catalog.KindServiceSettings, service.UUID)
	auth.UUID = catalog.DeriveUUID(catalog.KindAuthSettings, p.UUID)
	auth.ID = catalog.DeriveID(catalog.KindAuthSettings, auth.UUID)

	inner := projectDecoder{decoder: d, config: &config, once1: map[string]hcl.Range{}, codes: map[string]hcl.Range{}}
	for _, b := range block.Body.Blocks {
		if b.Body != nil {
			inner.block(b)
		}
	}
	d.res.Declared.Projects = append(d.res.Declared.Projects, config)
}

// A projectDecoder reads the blocks inside one project block.
type projectDecoder struct {
	*decoder
	config  *catalog.ProjectConfig
	primary hcl.Range            // of the first primary domain's label
	once1   map[string]hcl.Range // blocks that may occur once
	codes   map[string]hcl.Range // template codes
}

func (d *projectDecoder) block(b *hclsyntax.Block) {
	switch b.Type {
	case "domain":
		d.domain(b)
	case "service_settings":
		d.single(b)
		d.serviceSettings(b)
	case "auth_settings":
		d.single(b)
		d.authSettings(b)
	case "smtp_config":
		d.single(b)
		d.smtpConfig(b)
	case "template":
		t := d.template(b, d)
		d.config.Templates = append(d.config.Templates, t)
	default:
		d.unknownBlock(b, projectSchema)
	}
}

// single reports the second block of a type that a project may have once.
func (d *projectDecoder) single(b *hclsyntax.Block) {
	if first, taken := d.once1[b.Type]; taken {
		d.errorf(header(b), "a project has one "+b.Type+" block only", "the first is at %s; put both together", d.at(first))
		return
	}
	d.once1[b.Type] = header(b)
}
