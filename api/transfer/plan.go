package transfer

import (
	"context"
	"errors"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A Plan is what would change if files replaced a server's configuration. Its JSON is part of "plan --json".
type Plan struct {
	Changes     []Change `json:"changes"`
	Renumbered  int      `json:"renumbered"`  // objects whose uuid or id differ, if these are not compared
	NotCompared []string `json:"notCompared"` // for people
}

// NewPlan returns a Plan without changes, whose JSON has empty lists.
func NewPlan() Plan { return Plan{Changes: []Change{}, NotCompared: []string{}} }

// A Progress is called with the number of objects done and their total. It may be nil.
type Progress func(done, total int)

func (p Progress) set(done, total int) {
	if p != nil {
		p(done, total)
	}
}

// PlanServer compares want with a running server. parallel is how many projects are read at once. With ids, differing
// uuids and ids are changes; otherwise they are counted.
func PlanServer(ctx context.Context, c *client.Client, want *Tree, ids bool, parallel int, progress Progress) (Plan,
	error) {
	p := NewPlan()
	haves, err := c.Projects(ctx)
	if err != nil {
		return p, err
	}
	pairs := pairUp(haves, want.Projects)
	var cover coverage
	err = client.InOrder(ctx, parallel, len(pairs), readPairs(c, pairs), func(i int, have *client.Project) error {
		progress.set(i+1, len(pairs))
		v := view{}
		if have != nil {
			cover.add(have)
			v = seenBy(have, ids)
		}
		changes, renumbered := compareProject(have, pairs[i].want, v)
		p.Changes = append(p.Changes, changes...)
		p.Renumbered += renumbered
		return nil
	})
	if err != nil {
		return p, err
	}
	if cover.shared != nil {
		changes, renumbered := compareRest(&catalog.Declared{Templates: cover.shared},
			&catalog.Declared{Templates: want.Templates}, view{ids: ids, untold: cover.untold})
		p.Changes = append(p.Changes, changes...)
		p.Renumbered += renumbered
	}
	p.NotCompared = cover.blind()
	webhooks, told, err := c.DeclaredWebhooks(ctx)
	switch {
	case err != nil:
		return p, err
	case told:
		changes, _ := compareRest(&catalog.Declared{Webhooks: webhooks}, &catalog.Declared{Webhooks: want.Webhooks},
			view{ids: true})
		p.Changes = append(p.Changes, changes...)
	case len(want.Webhooks) > 0:
		p.NotCompared = append(p.NotCompared, webhooksUntold)
	}
	return p, nil
}

// webhooksUntold says why webhooks are neither compared, imported nor exported.
const webhooksUntold = "webhooks: the server has no call for them, or the key lacks write or secrets on every project"

// readPairs reads the project of each pair that the server has.
func readPairs(c *client.Client, pairs []pair) func(ctx context.Context, i int) (*client.Project, error) {
	return func(ctx context.Context, i int) (*client.Project, error) {
		if pairs[i].have == nil {
			return nil, nil
		}
		return c.Project(ctx, pairs[i].have)
	}
}

// A Store is the store that PlanStore compares with; *datadir.Stored is one.
type Store interface {
	Projects() ([]catalog.Project, error)
	Project(id int64) (*catalog.ProjectConfig, error)
	Templates(project int64) ([]catalog.Template, error)
	Keys() ([]catalog.Key, error)
	Edges() ([]catalog.Edge, error)
	Webhooks() ([]catalog.Webhook, error)
	Logins() ([]catalog.Login, error)
	Inbounds() ([]catalog.Inbound, error)
	Defaults() (*catalog.Defaults, error)
	Sealing() (*catalog.Sealing, error)
}

// PlanStore compares want with the store of a stopped server: keys, secrets, uuids and ids included.
func PlanStore(ctx context.Context, s Store, want *Tree) (Plan, error) {
	p := NewPlan()
	haves, err := s.Projects()
	if err != nil {
		return p, err
	}
	for _, pair := range pairUp(haves, want.Projects) {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		var have *client.Project
		if pair.have != nil {
			config, err := s.Project(pair.have.ID)
			if err != nil {
				return p, err
			}
			if config.SMTP != nil {
				config.SMTP.Port = config.SMTP.EffectivePort()
			}
			have = &client.Project{ProjectConfig: *config, Mail: true}
		}
		changes, _ := compareProject(have, pair.want, everything)
		p.Changes = append(p.Changes, changes...)
	}
	return p, p.compareRest(s, want)
}

// compareRest compares everything outside projects.
func (p *Plan) compareRest(s Store, want *Tree) error {
	templates, err1 := s.Templates(0)
	keys, err2 := s.Keys()
	edges, err3 := s.Edges()
	defaults, err4 := s.Defaults()
	sealing, err5 := s.Sealing()
	webhooks, err6 := s.Webhooks()
	logins, err7 := s.Logins()
	inbounds, err8 := s.Inbounds()
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return err
	}
	changes, _ := compareRest(&catalog.Declared{Templates: templates, Keys: keys, Edges: edges, Webhooks: webhooks,
		Logins: logins, Inbounds: inbounds, Defaults: defaults, Sealing: sealing}, want.rest(), everything)
	p.Changes = append(p.Changes, changes...)
	return nil
}
