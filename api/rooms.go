package api

import (
	"slices"

	"fingerpost/api/gateway"
	"fingerpost/api/mailapi"
	"fingerpost/api/platform"
	"fingerpost/api/platform/keys"
	"fingerpost/api/platform/webhooks"
	"fingerpost/api/web"
	"fingerpost/configsrc/edits"
	"fingerpost/resolver"
	"fingerpost/resolver/signedlink"
)

// rooms are the packages that answer most of the calls.
type rooms struct {
	platform *platform.API
	keys     *keys.API
	webhooks *webhooks.API
	mail     *mailapi.API
	gateway  *gateway.API
	links    *signedlink.Recipients // with which recipients unsubscribe
}

func newRooms(o *Options, ring *keyring, cacheControl []byte) *rooms {
	live, config := o.Resolver, &o.Config
	writer := &web.Writer{Files: config.Files, Store: live, Git: config.Git}
	return &rooms{
		platform: &platform.API{
			State: live, Explainer: config.Explainer, Writer: writer, Lists: live, Trail: live, History: config.Git,
			Published: live.Published, Edges: o.Cluster.Edges, Hook: config.Hook,
			Proposals: &platform.Proposals{Set: config.Proposals, Plan: config.Plan, Live: live, Blocked: o.BlockedKeyIDs},
			Verifier:  config.Verifier,
			Logger:    o.Logger,
		},
		keys: &keys.API{Live: live, Writer: writer, Uses: &ring.uses, Blocked: o.BlockedKeyIDs},
		webhooks: &webhooks.API{State: live, Keys: live.Keys, Writer: writer, Notes: live, Allow: config.WebhookAllow,
			Engine: config.WebhookEngine, Trail: live},
		mail: &mailapi.API{Config: live, Writer: writer, Live: live, Log: live, Lists: live, Mail: o.Mail,
			PublicURL: config.PublicURL,
			Waits:     mailapi.NewWaits(o.Limits.Sends), Senders: o.Senders,
			Inbound: config.Inbound, Throttle: ring.throttle.fail, ReadOnly: config.ReadOnly},
		gateway: &gateway.API{Options: o.Gateway, Live: traced{live}, KeySets: config.KeySets, Throttle: ring.throttle.fail,
			CacheControl: cacheControl},
		links: signedlink.NewRecipients(live),
	}
}

// routes lists the calls of the rooms.
func (rs *rooms) routes() []route {
	return append(Platform.of(slices.Concat(rs.platform.Routes(), rs.keys.Routes(), rs.webhooks.Routes(),
		rs.gateway.Routes())),
		Mail.of(rs.mail.Routes())...)
}

// proposed returns the run of a route's call on the state of a proposal: the same handlers on other objects and other
// files.
func (rs *rooms) proposed(rt *route, r *web.Request) func(*resolver.Overlay, *edits.Overlay) error {
	return func(state *resolver.Overlay, files *edits.Overlay) error {
		writer := &web.Writer{Files: files, Store: rs.platform.Writer.Store}
		table := slices.Concat(rs.platform.On(state, files, writer).Routes(), rs.mail.On(state, writer).Routes(),
			rs.webhooks.On(state, writer).Routes())
		same := func(own web.Route) bool { return own.Method == rt.Method && own.Path == rt.Path }
		return table[slices.IndexFunc(table, same)].Run(r)
	}
}
