package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// What no edit has touched need not be decoded again: a block inside a project says, in a Draft's result, what it said in
// the source, as long as its project has the identity that it had. Only what blocks have to do with each other (what there
// may be one of, and where it stands) is gone through as ever. A block with an identity of its own is decoded.
// That the bytes of all these are what they were, and where, Verify proves.

// An earlier is what a file said before the edits that made the one that is being decoded.
type earlier struct {
	blocks   hclsyntax.Blocks // the file's own, of which there still are as many
	edited   *region          // inside one of them
	projects []catalog.ProjectConfig
}

// earlier is what d's source says, of which decoding gave no diagnostic; nil where it is of no use.
func (d *Draft) earlier(said *catalog.Declared) *earlier {
	if said == nil || d.edited == nil || len(d.edited.around) == 0 {
		return nil
	}
	projects := 0
	for _, b := range d.body.Blocks {
		if b.Type == "project" {
			projects++
		}
	}
	if projects != len(said.Projects) {
		return nil
	}
	return &earlier{blocks: d.body.Blocks, edited: d.edited, projects: said.Projects}
}

// A keeper knows what the blocks inside a project said before. The zero value knows nothing.
type keeper struct {
	project     *catalog.ProjectConfig
	blocks      hclsyntax.Blocks
	front, back int // so many of them, at the beginning and at the end, are as they were
	at, domains int // how many were passed, and how many domains among them
}

// keeper is for the file's own block with this number, the project of which so many stand before it.
func (e *earlier) keeper(block, project int) (k keeper) {
	if e == nil {
		return k
	}
	k = keeper{project: &e.projects[project], blocks: e.blocks[block].Body.Blocks}
	domains := 0
	for _, b := range k.blocks {
		if b.Type == "domain" {
			domains++
		}
		switch {
		case b.CloseBraceRange.End.Byte <= e.edited.from.Byte:
			k.front++
		case b.TypeRange.Start.Byte >= e.edited.to.Byte:
			k.back++
		}
	}
	if domains != len(k.project.Domains) {
		return keeper{}
	}
	return k
}

// kept tells what one of the project's blocks, of which there are so many now, said before: all of the project, and which
// of its domains. It is nil for one that was edited. Blocks are asked for in order.
func (k *keeper) kept(i, of int) (was *catalog.ProjectConfig, domain int) {
	switch {
	case k.project == nil:
		return nil, 0
	case i < k.front:
	case i >= of-k.back:
		i += len(k.blocks) - of
	default:
		return nil, 0
	}
	for ; k.at < i; k.at++ {
		if k.blocks[k.at].Type == "domain" {
			k.domains++
		}
	}
	return k.project, k.domains
}

// keep takes over what a block said in the project was, of whose domains it may be the one with this number. It reports
// false where it has to be decoded.
func (d *projectDecoder) keep(block *hclsyntax.Block, was *catalog.ProjectConfig, domain int) bool {
	p := &d.config.Project
	if was == nil || was.Project.UUID != p.UUID || was.Project.ID != p.ID || block.Body.Attributes["uuid"] != nil || block.Body.Attributes["id"] != nil {
		return false
	}
	switch block.Type {
	case "domain":
		dom := was.Domains[domain]
		d.addDomain(block, &dom, true)
	case "service_settings":
		d.single(block)
		d.config.Service = was.Service
		d.place(catalog.KindServiceSettings, "", p.ID, block)
	case "auth_settings":
		d.single(block)
		d.config.Auth = was.Auth
		d.place(catalog.KindAuthSettings, "", p.ID, block)
	default:
		return false
	}
	return true
}
