package transfer

import (
	"fmt"
	"slices"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// coverage collects which parts of its projects a server returned.
type coverage struct {
	projects, flatless, mailless int
	untold                       client.Untold // of the default templates
	bodiless                     int
	ageless                      bool               // a template came without maxAge
	shared                       []catalog.Template // the default templates; nil: unknown
}

func (c *coverage) add(f *client.Project) {
	c.projects++
	if !f.Flat {
		c.flatless++
	}
	if !f.Mail {
		c.mailless++
	} else if c.shared == nil {
		c.shared, c.untold = slices.Concat(f.Shared, []catalog.Template{}), f.Untold
		if c.shared == nil {
			c.shared = []catalog.Template{}
		}
	}
	c.bodiless += f.Untold.Bodiless()
	c.ageless = c.ageless || len(f.Untold) > 0
}

// blind lists what could not be compared.
func (c *coverage) blind() []string {
	out := []string{"keys, logins, inbound blocks, the defaults and sealing blocks, secrets and ca_file: " +
		"no API tells them"}
	if c.ageless {
		out = append(out, "max_age and languages of templates: the server does not tell them")
	}
	if c.flatless > 0 {
		out = append(out, fmt.Sprintf("jwt_*, refresh_token_*, session_timeout, password_*, sms_provider and "+
			"audit_retention_days of %s: they show through an active domain of a project that is not suspended, where the "+
			"server has the flat form of resolve",
			catalog.Count(c.flatless, "project")))
	}
	if c.mailless > 0 || c.projects == 0 {
		out = append(out, fmt.Sprintf("SMTP config and templates of %s: there is no mail API for them",
			catalog.Count(c.mailless, "project")))
	}
	if c.bodiless > 0 {
		out = append(out, fmt.Sprintf("the bodies of %s: the server has no call that tells them", catalog.Count(c.bodiless,
			"template")))
	}
	return out
}
