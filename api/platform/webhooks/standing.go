package webhooks

import (
	"context"

	"fingerpost/api/web"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// standings say how webhooks do, for the rows of a list. They are not part of GET /webhooks/{name}: its ETag is that of
// what the files declare, so a client with a cache would go on seeing how the webhook once did.
type standings struct {
	engine Engine // nil: rows have none
	by     map[string]*webhook.Status
}

// standings asks the Engine. A list must not fail because the ledger does.
func (a *API) standings(r *web.Request) *standings {
	s := &standings{by: map[string]*webhook.Status{}}
	if a.Engine == nil {
		return s
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	all, _, err := a.Engine.Status(ctx)
	if err != nil {
		return s
	}
	s.engine = a.Engine
	for i := range all {
		s.by[all[i].Name] = &all[i]
	}
	return s
}

// A standing is how a webhook does.
type standing struct {
	State     string        `json:"state"` // on, off by itself, or inactive as the files say
	OffReason *string       `json:"offReason"`
	OffSince  *string       `json:"offSince"`
	Waiting   int           `json:"waiting"`
	Failing   int           `json:"failing"`
	Oldest    *string       `json:"oldest"`
	Last      *lastDelivery `json:"last"`
}

type lastDelivery struct {
	ID        string  `json:"id"`
	Event     string  `json:"event"`
	Object    *string `json:"object"`
	State     string  `json:"state"`
	CreatedAt string  `json:"createdAt"`
}

// appendRow appends a webhook with how it does.
func (s *standings) appendRow(dst []byte, w *catalog.Webhook) []byte {
	dst = rowjson.AppendWebhook(dst, w)
	if s.engine == nil {
		return dst
	}
	last, found, err := s.engine.LastDelivery(w.Name)
	if err != nil {
		return dst
	}
	of := standingOf(w.Active, s.by[w.Name])
	if found {
		of.Last = &lastDelivery{last.ID, last.Event, orNull(last.Object), last.State, catalog.Moment(last.Created)}
	}
	text, err := web.EncodeJSON(of)
	if err != nil {
		return dst
	}
	return append(append(append(dst[:len(dst)-1], `,"delivery":`...), text...), '}')
}

// standingOf returns how a webhook does. s is nil for one that the Engine has not begun with.
func standingOf(active bool, s *webhook.Status) (of standing) {
	switch {
	case !active:
		of.State = "inactive"
		return of
	case s == nil:
		of.State = "on"
		return of
	}
	of = standing{State: "on", Waiting: s.Waiting, Failing: s.Failing, Oldest: moment(s.Oldest),
		OffReason: orNull(s.OffReason), OffSince: moment(s.OffSince)}
	if !s.OffSince.IsZero() {
		of.State = "off"
	}
	return of
}
