package console

import (
	"net/http"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/conditions"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// rights are what a key may do, by the rules of the API. Pages offer nothing else; the API decides.
type rights struct {
	Save    bool // change what is live
	Propose bool // change it on a branch that somebody else applies
	Edit    bool // one of the two
	Create  bool // projects, and give them other slugs
	Mail    bool // send it, and test SMTP settings
	Keys    bool // manage keys
	// Webhooks says that they are seen and managed. Reads need what writes need, too: with some services, who has the address
	// of a webhook may post to it.
	Webhooks bool
}

// rightsOf returns what a key may do on a project; 0: on some project at least.
func (c *Console) rightsOf(k Key, project int64) rights { return c.rightsWith(k, k.at(project)) }

// rightsWith returns what a key may do that has some permissions on what a page is about.
func (c *Console) rightsWith(k Key, allow catalog.Permission) rights {
	const change, both = catalog.MayWrite | catalog.MayPropose, catalog.MayWrite | catalog.MaySecrets
	r := rights{Save: allow&catalog.MayWrite != 0, Mail: allow&catalog.MayMail != 0}
	r.Propose = c.o.Git && allow&change != 0
	r.Edit = r.Save || r.Propose
	r.Create = k.mayEverywhere(catalog.MayWrite) || c.o.Git && k.mayEverywhere(change) || k.Creates
	r.Keys = k.everywhere()&both == both
	r.Webhooks = r.Keys
	return r
}

// may returns what a session may do on some project at least.
func (c *Console) may(s *session) rights { return c.rightsOf(s.Key(), 0) }

// mayOn returns what a session may do on a project; 0: on some project at least.
func (c *Console) mayOn(s *session, project int64) rights { return c.rightsOf(s.Key(), project) }

// form reports whether forms of a kind are offered. project is 0 for a new one.
func (r rights) form(kind string, project int64) bool {
	switch {
	case kind == "key":
		return r.Keys
	case kind == "webhook":
		return r.Webhooks
	case kind == "project" && project == 0:
		return r.Create
	}
	return r.Edit
}

// refuseForm refuses a form that is not offered.
func (c *Console) refuseForm(k Key, kind string, project int64) *failure {
	least := catalog.MayWrite
	if c.o.Git {
		least = catalog.MayPropose
	}
	if c.rightsOf(k, project).Edit {
		least = 0
	}
	switch {
	case kind == "key":
		return k.refuse("Changing keys", catalog.MayWrite|catalog.MaySecrets, true)
	case kind == "webhook":
		return k.refuseWebhooks()
	case kind == "project" && project == 0:
		return k.refuse("Adding a project", least, true)
	case k.Reach != nil && k.May(least):
		return &failure{Status: http.StatusForbidden, Code: catalog.CodeForbidden,
			Message: "This change is not for you: you may change other projects, and not this one."}
	}
	return k.refuse("This change", least, false)
}

// refuseWebhooks refuses all that is about webhooks.
func (k Key) refuseWebhooks() *failure {
	return k.refuse("Managing webhooks", catalog.MayWrite|catalog.MaySecrets, true)
}

// refuse is the refusal of what requires permissions, all of them, and perhaps a key for every project. It names those that
// the key lacks.
func (k Key) refuse(what string, needs catalog.Permission, everything bool) *failure {
	lacks := (needs &^ k.Allow).Words()
	f := &failure{Status: http.StatusForbidden, Code: catalog.CodeForbidden, Requires: strings.Join(lacks, ",")}
	whole := k.Everything
	if k.Reach != nil {
		whole = needs != 0 && k.everywhere()&needs == needs
	}
	if everything && !whole {
		lacks = append(lacks, k.forEverything())
	}
	f.Message = what + " requires " + strings.Join(lacks, " and ") + "."
	return f
}

// forEverything names what would cover every project.
func (k Key) forEverything() string {
	if k.Reach != nil {
		return "a rule of the login that is for every project"
	}
	return "a key for every project"
}

// gives returns the permissions that a key can give to another one.
func (k Key) gives() catalog.Permission {
	switch {
	case k.mayEverywhere(catalog.MayWrite):
		return k.everywhere() | catalog.MayPropose | catalog.MayCreate
	case k.May(catalog.MayWrite):
		return k.Allow | catalog.MayPropose
	}
	return k.Allow
}

// A keyRow is a key with what can be done about it.
type keyRow struct {
	Key            client.Key
	Preset         string // whose permissions it has, "" if it is none
	Expiry         string // in words; "": it has none
	Expired, Soon  bool   // soon is within conditions.Soon
	Rotate, Revoke bool
}

// keyRows says of each key whether the holder of mine may rotate and revoke it (api/platform/README.md, Keys over the
// API).
func keyRows(list []client.Key, mine Key, now time.Time) []keyRow {
	rows, full := make([]keyRow, len(list)), 0
	keys := make([]catalog.Key, len(list))
	for i, o := range list {
		k := &keys[i]
		k.Name, k.ID, k.Owner, k.Projects, k.ExpiresAt = o.Name, o.ID, o.Owner, o.Projects, moment(o.ExpiresAt)
		if k.Allow, _ = catalog.ParsePermissions(o.Allow); k.Full(now) {
			full++
		}
	}
	for i := range keys {
		k := &keys[i]
		_, err := k.Rotate(now, 0)
		ends := mine.ExpiresAt.IsZero() || !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(mine.ExpiresAt)
		within := k.Allow&^mine.gives() == 0 && ends
		row := keyRow{Key: list[i], Rotate: err == nil && within, Revoke: full > 1 || !k.Full(now)}
		if p := catalog.PresetOf(k.Allow); p != nil {
			row.Preset = p.Name
		}
		if end := k.ExpiresAt; !end.IsZero() {
			row.Expired, row.Soon, row.Expiry = !end.After(now), end.Sub(now) < conditions.Soon, say.Until(end, now)
		}
		rows[i] = row
	}
	return rows
}
