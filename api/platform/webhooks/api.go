// Package webhooks answers the calls of /api/platform/webhooks: it lists, creates, changes, rotates and deletes the
// webhooks that the files declare. configsrc/webhooks.md has the rules.
//
// What it promises. Only a key with secrets on every project gets an answer, to reads, too: with some services, who has
// the address of a webhook may post to it. A write needs write as well, or propose for a proposal. The key is looked at
// again directly before the files change. No answer has a secret but the one that makes it.
//
// What it needs. The declared webhooks and the projects that they may name, live or of a proposal; the live keys, a
// web.Writer for the files, and Notes, which keep the end of a rotation. An Engine answers the calls about deliveries;
// they are never about a proposal and change no file. The audit trail gets an entry of each replay.
//
// What it does not do. It sends nothing itself, and does not end a rotation: the node does.
package webhooks

import (
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

const (
	path        = "/api/platform/webhooks"
	webhookPath = path + "/{name}"
)

// A State has the webhooks and projects; *resolver.Resolver and, for a proposal, *resolver.Overlay implement it.
type State interface {
	Webhooks() []catalog.Webhook
	ProjectBySlug(slug string) (*catalog.Project, error)
}

// Notes are small values that outlast a restart; *resolver.Resolver implements it.
type Notes interface {
	SetNamed(values map[string][]byte) error
}

// An API answers the calls. Safe for concurrent use.
type API struct {
	State  State
	Keys   func() *resolver.KeySet // those that are live
	Writer *web.Writer
	Notes  Notes
	Allow  *catalog.HTTPAllow // to which addresses a webhook may have http; nil: to any
	Engine Engine             // nil: what needs one is answered 503
	Trail  Trail
}

// On returns an API for the state of a proposal.
func (a *API) On(state State, writer *web.Writer) *API {
	on := *a
	on.State, on.Writer, on.Engine = state, writer, nil // nothing is delivered to what is proposed
	return &on
}

// Routes lists every call.
func (a *API) Routes() []web.Route {
	const write = catalog.MayWrite
	return append(a.liveRoutes(),
		web.Call("GET", path, write, web.Proposable, a.list),
		web.Call("POST", path, write, 0, a.create),
		web.Call("GET", webhookPath, write, web.Proposable, a.get),
		web.Call("PUT", webhookPath, write, 0, a.update),
		web.Call("DELETE", webhookPath, write, 0, a.remove),
		web.Call("POST", webhookPath+"/rotate", write, web.LiveOnly, a.rotate),
	)
}

var refuseWebhooks = &catalog.Error{Code: catalog.CodeForbidden,
	Message: "webhooks are for keys that have secrets on every project"}

// permit returns an error if a request's key may not make the call.
func permit(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	return refuse(r.Key)
}

func refuse(k *resolver.Key) error {
	lacks := catalog.MaySecrets &^ k.Allow
	if lacks == 0 && k.EveryProject() {
		return nil
	}
	e := *refuseWebhooks
	e.Requires = lacks
	return &e
}

// permitted returns the check that is made directly before the files change: the request's key is as it was.
func (a *API) permitted(r *web.Request) func() error {
	was := r.Key
	return func() error {
		key := a.Keys().Renewed(was)
		if key == nil || key.Expired(time.Now()) {
			return web.RefuseKey
		}
		if key.Allow != was.Allow {
			return &catalog.Error{Code: catalog.CodeForbidden, Message: "the key's permissions have changed; try again"}
		}
		return refuse(key)
	}
}

// list answers GET /webhooks.
func (a *API) list(r *web.Request) error {
	page, err := web.ParsePaging(r.Ctx.URI().QueryString(), []string{"name", "url"}, nil)
	if err != nil {
		return err
	}
	if err := permit(r); err != nil {
		return err
	}
	q := page.Query(nil)
	if q.Sort == "" {
		q.Sort = "name"
	}
	all := a.State.Webhooks()
	rows := make([]*catalog.Webhook, len(all))
	for i := range all {
		rows[i] = &all[i]
	}
	if rows, err = resolver.ArrangeWebhooks(rows, q); err != nil {
		return err
	}
	r.SucceedPage("webhooks found", web.AppendRows(rows, a.standings(r).appendRow), page, len(all))
	return nil
}

// named returns the webhook with a name, nil if there is none.
func (a *API) named(name string) *catalog.Webhook {
	all := a.State.Webhooks()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// webhookOf checks the name in the path and the key, and returns the webhook.
func (a *API) webhookOf(r *web.Request) (*catalog.Webhook, error) {
	name, _ := r.Ctx.UserValue("name").(string) // not unescaped: a name has nothing to escape
	if msg := catalog.CheckSlug(name); msg != "" {
		return nil, web.InvalidField("name", msg)
	}
	if err := permit(r); err != nil {
		return nil, err
	}
	w := a.named(name)
	if w == nil {
		return nil, catalog.NotFound("webhook")
	}
	return w, nil
}

// get answers GET /webhooks/{name}.
func (a *API) get(r *web.Request) error {
	w, err := a.webhookOf(r)
	if err != nil {
		return err
	}
	r.SucceedTagged("webhook found", rowjson.AppendWebhook(nil, w), rowjson.WebhookETag(w))
	return nil
}

// create answers POST /webhooks. See web/write.go for the steps.
func (a *API) create(r *web.Request) error {
	if err := permit(r); err != nil {
		return err
	}
	f, err := r.ReadForm(append([]string{"name"}, fieldNames...), readOnly...)
	if err != nil {
		return err
	}
	w, made, err := a.readNew(f)
	if err != nil {
		return err
	}
	err = a.Writer.Write(r, &catalog.Edit{Webhook: &catalog.WebhookEdit{Name: w.Name, Create: w, Permit: a.permitted(r)}})
	if err != nil {
		return err
	}
	is, err := a.again(w.Name)
	if err != nil {
		return err
	}
	row := rowjson.AppendWebhook(nil, is)
	if made != "" {
		row = rowjson.AppendNewSecret(nil, is, made)
	}
	r.SucceedSaved("webhook", true, row, rowjson.WebhookETag(is), path+"/"+w.Name)
	return nil
}

// again returns a webhook after a write.
func (a *API) again(name string) (*catalog.Webhook, error) {
	if w := a.named(name); w != nil {
		return w, nil
	}
	return nil, catalog.NotFound("webhook") // somebody has removed it at once
}

// update answers PUT /webhooks/{name}.
func (a *API) update(r *web.Request) error {
	w, err := a.webhookOf(r)
	if err != nil {
		return err
	}
	f, err := r.ReadForm(fieldNames, append([]string{"name"}, readOnly...)...)
	if err != nil {
		return err
	}
	trial := w.Clone()
	if err := a.fill(f, &trial); err != nil {
		return err
	}
	if err := r.Matches(rowjson.WebhookETag(w)); err != nil {
		return err
	}
	err = a.Writer.Write(r, &catalog.Edit{Webhook: &catalog.WebhookEdit{Name: w.Name, Permit: a.permitted(r),
		Change: func(w *catalog.Webhook) error {
			if err := r.Matches(rowjson.WebhookETag(w)); err != nil {
				return err
			}
			return a.fill(f.Again(), w)
		}}})
	if err != nil {
		return err
	}
	is, err := a.again(w.Name)
	if err != nil {
		return err
	}
	r.SucceedWritten("webhook updated", rowjson.AppendWebhook(nil, is), rowjson.WebhookETag(is))
	return nil
}

// remove answers DELETE /webhooks/{name}.
func (a *API) remove(r *web.Request) error {
	w, err := a.webhookOf(r)
	if err != nil {
		return err
	}
	if err := r.Matches(rowjson.WebhookETag(w)); err != nil {
		return err
	}
	err = a.Writer.Write(r, &catalog.Edit{Webhook: &catalog.WebhookEdit{Name: w.Name, Permit: a.permitted(r)}})
	if err != nil {
		return err
	}
	r.Succeed("webhook deleted", []byte("null"))
	return nil
}

// rotate answers POST /webhooks/{name}/rotate.
func (a *API) rotate(r *web.Request) error {
	w, err := a.webhookOf(r)
	if err != nil {
		return err
	}
	overlap, err := r.ReadOverlap()
	if err != nil {
		return err
	}
	text := catalog.NewWebhookSecret()
	var end any
	if overlap > 0 {
		at := time.Now().Add(overlap).UTC().Truncate(time.Second)
		end = at
		if !r.Dry { // before the files: secrets that outlive their rotation would never go
			if err := a.Notes.SetNamed(catalog.RotationEnd(w.Name, at)); err != nil {
				return catalog.Unavailable("the end of the rotation cannot be noted at the moment; nothing was changed")
			}
		}
	}
	err = a.Writer.Write(r, &catalog.Edit{Webhook: &catalog.WebhookEdit{Name: w.Name, Permit: a.permitted(r), Seals: true,
		Change: func(w *catalog.Webhook) error {
			w.Rotate(catalog.Secret{Source: catalog.SecretPlain, Ref: text}, overlap > 0)
			return nil
		}}})
	if err != nil {
		return err
	}
	is, err := a.again(w.Name)
	if err != nil {
		return err
	}
	r.Succeed("webhook rotated", rowjson.AppendRotatedSecret(nil, is, text, end))
	return nil
}
