package now

import (
	"strconv"

	"fingerpost/api/conditions"
)

// A page helps with a condition: its path, and what to do there.
type page struct{ to, do string }

const (
	problems      = "/console/problems"
	live          = "/console/live"
	mail          = "/console/mail"
	keys          = "/console/keys"
	proposalsPath = "/console/proposals"
)

// pages are the pages of the console that help with conditions. The others lead to their section of the guide.
var pages = map[string]struct {
	one page                                         // with one
	of  func(c *conditions.Condition, may *May) page // with one, by what the key may do; nil: one
	all page                                         // with several that are alike, whose pages differ
}{
	"files-broken":   {one: page{problems, "See where"}},
	"files-warned":   {one: page{problems, "See where"}},
	"reload-held":    {of: held},
	"reload-failing": {one: page{problems, "See the problem"}},
	"store-degraded": {one: page{problems, "See the problem"}},

	"config-disk-low": {one: page{problems, "See the problem"}},
	"git-conflict":    {one: page{problems, "See what to do"}},
	"git-failing":     {one: page{problems, "See the problem"}},
	"git-behind":      {one: page{live, "See the state"}},
	"git-overruled":   {one: page{problems, "See them"}},

	"mail-waits":    {one: page{mail, "See the queue"}},
	"mail-disk-low": {one: page{mail, "See the queue"}},
	"mail-stopped":  {of: mendMail, all: page{mail, "See them"}},

	"edge-missing":    {one: page{live, "See the edges"}},
	"edge-unready":    {one: page{live, "See the edges"}},
	"edge-lags":       {one: page{live, "See the edges"}},
	"edge-reports":    {one: page{live, "See the edges"}},
	"edge-cut-off":    {of: ofEverything(page{live, "See the state"})},
	"cluster-problem": {one: page{live, "See the state"}},

	"webhook-off":      {of: hooks},
	"webhook-waits":    {of: hooks},
	"webhook-gave-up":  {of: hooks},
	"webhook-gap":      {of: hooks},
	"webhooks-stopped": {of: hooks},

	"sender-worse": {of: senderOf},

	"domain-lost":    {of: records},
	"domain-failing": {of: records},
	"domain-pending": {of: records},
	"key-ends":       {of: ofEverything(page{keys, "See the keys"})},
}

// ofEverything is a page that only a key for every project may see.
func ofEverything(p page) func(*conditions.Condition, *May) page {
	return func(_ *conditions.Condition, may *May) page {
		if may.Everything {
			return p
		}
		return page{}
	}
}

// hooks is the list of webhooks, for a key that may see it.
func hooks(c *conditions.Condition, may *May) page {
	if may.Webhooks {
		return page{"/console/webhooks", "See the webhooks"}
	}
	return guideOf(c)
}

func guideOf(c *conditions.Condition) page { return page{c.Guide, "See what to do"} }

func held(_ *conditions.Condition, may *May) page {
	if may.Write {
		return page{problems, "Look and decide"}
	}
	return page{problems, "See what it removes"}
}

const suspended = "PROJECT_SUSPENDED"

func mendMail(c *conditions.Condition, may *May) page {
	id := strconv.FormatInt(c.Project, 10)
	switch {
	case c.Project == 0: // the rest of a long list
		return page{mail, "See them"}
	case may.edits(c.Project) && c.Code == suspended:
		return page{"/console/edit?kind=project&project=" + id, "Change its status"}
	case may.edits(c.Project):
		return page{"/console/edit?kind=smtp-config&project=" + id, "Mend the SMTP config"}
	}
	return page{mail + "?project=" + id, "See its mail"}
}

// senderOf is the page with the sender check of a project.
func senderOf(c *conditions.Condition, _ *May) page {
	if c.Project == 0 {
		return guideOf(c)
	}
	return page{"/console/projects/" + strconv.FormatInt(c.Project, 10) + "/sender", "Check the sender"}
}

func records(c *conditions.Condition, _ *May) page {
	return page{"/console/projects/" + strconv.FormatInt(c.Project, 10) + "/domains/" + strconv.FormatInt(c.Domain, 10),
		"See its records"}
}
