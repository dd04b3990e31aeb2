package hclfile

import (
	"strconv"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// An identity is the uuid and id lines of a block, as written.
type identity struct {
	uuid string
	id   int
}

// fields returns the two attributes, which come in this order at the end of the schemas that have them.
func (i *identity) fields() []catalog.Field {
	return []catalog.Field{{Name: "uuid", Value: &i.uuid}, {Name: "id", Value: &i.id}}
}

// newUUID in a uuid line means that a renamed slug is a new project.
const newUUID = "new"

// identify returns the uuid and id in force: the written ones, else the derived ones. slug is set for projects, where
// "new" is allowed, and "" otherwise.
func (d *decoder) identify(c *content, kind catalog.Kind, written identity, derived catalog.UUID,
	slug string) (catalog.UUID, int64) {
	uuid := derived
	if attr := c.block.Body.Attributes["uuid"]; attr != nil && c.says("uuid") {
		switch parsed, err := catalog.ParseUUID(written.uuid); {
		case err == nil:
			uuid = parsed
			d.onceIdentity(kind, "uuid", uuid.String(), attr)
		case written.uuid == newUUID && kind == catalog.KindProject:
			d.res.NewUUIDs = append(d.res.NewUUIDs, slug)
		case written.uuid == newUUID:
			d.errorf(attr.Expr.Range(), `uuid = "new" is for projects only`,
				"leave the line out: the uuid follows from the project's")
		default:
			d.errorf(attr.Expr.Range(), "uuid: "+err.Error(), "leave the line out to have one derived")
		}
	}
	id := catalog.DeriveID(kind, uuid)
	if attr := c.block.Body.Attributes["id"]; attr != nil && c.says("id") {
		if written.id < 1 || written.id > catalog.MaxDeclaredID {
			d.errorf(attr.Expr.Range(), "id: must be from 1 to 2147483647", "leave the line out to have one derived")
		} else {
			id = int64(written.id)
			d.onceIdentity(kind, "id", strconv.Itoa(written.id), attr)
		}
	}
	return uuid, id
}

func (d *decoder) onceIdentity(kind catalog.Kind, what, text string, attr *hclsyntax.Attribute) {
	d.once(claim{string(kind) + "." + what, text}, attr.Expr.Range(), "two blocks have the same "+what,
		"each object needs its own")
}

// says reports whether an attribute was written and could be read.
func (c *content) says(name string) bool {
	_, i := c.schema.attribute(name)
	return i >= 0 && c.said.Has(i)
}
