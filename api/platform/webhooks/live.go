package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
	"fingerpost/resolver/rowjson"
)

// An Engine delivers events; *webhook.Engine implements it.
type Engine interface {
	Test(ctx context.Context, name string) (webhook.Outcome, error)
	Status(ctx context.Context) (all []webhook.Status, problem string, err error)
	LastDelivery(name string) (h records.HookDelivery, found bool, err error)
	Resume(ctx context.Context, name string) error
	Replay(ctx context.Context, name string, q webhook.Replay) (count int, err error)
	Deliveries(name string, q records.HookQuery) (list []records.HookDelivery, total int, err error)
}

// A Trail takes the entry of a replay; *resolver.Resolver implements it.
type Trail interface {
	Auditable() bool
	NoteObject(action, object string, by catalog.Author, changes ...catalog.FieldChange)
}

// Bounds of the live calls. A test waits for a place among the requests to all receivers, and then for the receiver; it
// ends before an edge that has forwarded it gives up.
const (
	testTime = 18 * time.Second
	liveTime = 10 * time.Second
	listTime = 2 * time.Second // in which the Engine tells how webhooks do; else a list does without
)

var (
	refuseEngine = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this server delivers no events to webhooks: it runs with --webhooks=false or --read-only"}
	refuseBusy = catalog.Unavailable("too much is at work for webhooks at the moment; nothing was done")
	refuseDry  = web.InvalidField(web.DryRunParam, "is not for this call: it changes no file")
)

// liveRoutes lists the calls that need an Engine.
func (a *API) liveRoutes() []web.Route {
	const write = catalog.MayWrite
	return []web.Route{
		web.Call("GET", webhookPath+"/deliveries", write, web.ByAuthority, a.listDeliveries),
		web.Call("POST", webhookPath+"/test", write, web.LiveOnly, a.test),
		web.Call("POST", webhookPath+"/resume", write, web.LiveOnly, a.resume),
		web.Call("POST", webhookPath+"/replay", write, web.LiveOnly, a.replay),
	}
}

// live is webhookOf for a call that changes no file.
func (a *API) live(r *web.Request) (*catalog.Webhook, error) {
	if r.Dry {
		return nil, refuseDry
	}
	w, err := a.webhookOf(r)
	switch {
	case err != nil:
		return nil, err
	case a.Engine == nil:
		return nil, refuseEngine
	}
	return w, r.Matches(rowjson.WebhookETag(w))
}

// busy returns UNAVAILABLE in place of the error of a context that has ended.
func busy(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return refuseBusy
	}
	return err
}

// test answers POST /webhooks/{name}/test.
func (a *API) test(r *web.Request) error {
	w, err := a.live(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), testTime)
	defer cancel()
	out, err := a.Engine.Test(ctx, w.Name)
	if err != nil {
		return busy(err)
	}
	message := "a test event was delivered"
	if !out.Delivered {
		message = "a test event was not delivered"
	}
	return r.SucceedJSON(message, struct {
		Delivered bool `json:"delivered"`
		outcome
	}{out.Delivered, outcomeOf(out.Status, out.Took, out.Answer, out.Error)})
}

// resume answers POST /webhooks/{name}/resume. For a webhook that is on there is nothing to do.
func (a *API) resume(r *web.Request) error {
	w, err := a.live(r)
	if err != nil {
		return err
	}
	if !w.Active {
		return refuseInactive(w)
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveTime)
	defer cancel()
	if err := a.Engine.Resume(ctx, w.Name); err != nil {
		return busy(err)
	}
	r.Succeed("the webhook is on", a.standings(r).appendRow(nil, w))
	return nil
}

func refuseInactive(w *catalog.Webhook) error {
	return &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("the webhook %q is not active", w.Name),
		Problems: catalog.Problems{{Path: "active",
			Message: "is false: set active to true, and the webhook gets what happens from then on"}}}
}

// replay answers POST /webhooks/{name}/replay. It is accepted once the Engine has stored it.
func (a *API) replay(r *web.Request) error {
	w, err := a.live(r)
	if err != nil {
		return err
	}
	f, err := r.ReadForm([]string{"id", "from", "to"})
	if err != nil {
		return err
	}
	q, err := readReplay(f, time.Now())
	switch {
	case err != nil:
		return err
	case !w.Active:
		return refuseInactive(w)
	case !a.Trail.Auditable():
		return catalog.ErrUnaudited
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveTime)
	defer cancel()
	count, err := a.Engine.Replay(ctx, w.Name, q)
	if err != nil {
		return busy(err)
	}
	message := "events are sent again"
	if count == 0 {
		message = "there is no event of that time for the webhook"
	} else {
		a.Trail.NoteObject(catalog.AuditReplay, w.Name, r.Author(), replayChanges(q, count)...)
	}
	r.Succeed(message, fmt.Appendf(nil, `{"count":%d}`, count))
	r.Ctx.Response.SetStatusCode(http.StatusAccepted)
	return nil
}

// readReplay reads what is sent again: one delivery, or the events of a time that has begun.
func readReplay(f *web.Form, now time.Time) (q webhook.Replay, err error) {
	byID, byTime := f.Has("id"), f.Has("from") || f.Has("to")
	switch {
	case byID && byTime:
		f.Fail("id", "is for one delivery, and from and to are for the events of a time: give one or the other")
	case !byID && !byTime:
		f.Fail("body", "must have the id of a delivery, or from and to, the times between which events happened")
	case byTime:
		f.Require("from", "is required with to: the time from which events are sent again")
	}
	if f.Read("id", &q.ID); byID && q.ID == "" {
		f.Fail("id", "must be the id of a delivery, as the list of deliveries has it")
	}
	f.Moment("from", &q.From)
	f.Moment("to", &q.To)
	if q.From.After(now) {
		f.Fail("from", "is in the future: nothing has happened then")
	}
	if !q.To.IsZero() && !q.From.Before(q.To) {
		f.Fail("to", "must be later than from")
	}
	return q, f.Validated(nil)
}

func replayChanges(q webhook.Replay, count int) []catalog.FieldChange {
	changes := []catalog.FieldChange{}
	add := func(field string, value any) {
		changes = append(changes, catalog.FieldChange{Field: field, After: value})
	}
	if q.ID != "" {
		add("delivery", q.ID)
	} else {
		add("from", catalog.Moment(q.From))
		if !q.To.IsZero() {
			add("to", catalog.Moment(q.To))
		}
	}
	add("count", int64(count))
	return changes
}

// deliveryFilters are the parameters that select deliveries.
var deliveryFilters = []string{"state", "event", "from", "to"}

// listDeliveries answers GET /webhooks/{name}/deliveries: always paginated, and latest first by default.
func (a *API) listDeliveries(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	query, problems := parseDeliveryQuery(raw)
	page, err := web.ParsePaging(raw, []string{"createdAt"}, problems)
	if err != nil {
		return err
	}
	w, err := a.webhookOf(r)
	switch {
	case err != nil:
		return err
	case a.Engine == nil:
		return refuseEngine
	}
	page.Paged = true
	query.Page, query.Limit, query.Ascending = page.Page, page.Limit, page.Order == "asc"
	found, total, err := a.Engine.Deliveries(w.Name, query)
	if err != nil {
		return err
	}
	rows := make([]delivery, len(found))
	for i := range found {
		rows[i] = deliveryOf(&found[i])
	}
	data, err := web.EncodeJSON(rows)
	if err != nil {
		return err
	}
	r.SucceedPage("deliveries found", data, page, total)
	return nil
}

// parseDeliveryQuery reads the filters of the list of deliveries and reports every problem. A parameter that the call
// does not have is one: a misspelt filter would list everything.
func parseDeliveryQuery(raw []byte) (f records.HookQuery, _ catalog.Problems) {
	q := web.ParseQuery(raw, deliveryFilters...)
	given := func(name string) bool { _, is := q.Values[name]; return is }
	if f.State = q.Values["state"]; given("state") && !slices.Contains(records.HookStates, f.State) {
		q.Problems.Addf("state", "must be one of %s", strings.Join(records.HookStates, ", "))
	}
	events := append(catalog.WebhookEvents(), webhook.GapEvent)
	if f.Event = q.Values["event"]; given("event") && !slices.Contains(events, f.Event) {
		q.Problems.Addf("event", "must be an event, such as domain.update%s", web.Meant(names.Near(f.Event, events)))
	}
	q.Moment("from", &f.From)
	q.Moment("to", &f.To)
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		q.Problems.Addf("to", "must be later than from")
	}
	q.RefuseOthers(raw, slices.Concat(deliveryFilters, web.PagingParams))
	return f, q.Problems
}

// A delivery is an event at a webhook, as it is answered.
type delivery struct {
	ID            string    `json:"id"`
	Event         string    `json:"event"`
	Object        *string   `json:"object"`
	Entry         *int64    `json:"entry"` // null: it is no entry of the audit trail
	ProjectID     *int64    `json:"projectId"`
	State         string    `json:"state"`
	CreatedAt     string    `json:"createdAt"`
	NextAttemptAt *string   `json:"nextAttemptAt"`
	Attempts      []attempt `json:"attempts"`
}

type attempt struct {
	Time string `json:"time"`
	outcome
}

// An outcome is what has become of an attempt. Without a status no answer came.
type outcome struct {
	Status *int    `json:"status"`
	Millis int64   `json:"ms"`
	Answer *string `json:"answer"`
	Error  *string `json:"error"`
}

func outcomeOf(status int, took time.Duration, answer, failure string) outcome {
	o := outcome{Millis: took.Milliseconds(), Error: orNull(failure)}
	if status != 0 {
		o.Status, o.Answer = &status, &answer
	}
	return o
}

func deliveryOf(h *records.HookDelivery) delivery {
	d := delivery{ID: h.ID, Event: h.Event, Object: orNull(h.Object), Entry: orNull(h.Entry),
		ProjectID: orNull(h.Project), State: h.State, CreatedAt: catalog.Moment(h.Created),
		NextAttemptAt: moment(h.NextAttemptAt), Attempts: []attempt{}}
	for _, at := range h.Attempts {
		d.Attempts = append(d.Attempts, attempt{catalog.Moment(at.Time), outcomeOf(at.Status, at.Took, at.Answer, at.Error)})
	}
	return d
}

// moment returns a time as answers have it, nil for the zero time.
func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := catalog.Moment(t)
	return &text
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
