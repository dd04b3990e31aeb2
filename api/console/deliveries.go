package console

import (
	"net/http"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// deliveryPage is the path that leads to the page of a webhook's delivery.
func deliveryPage(name, id string) string { return webhookPage(name) + "/deliveries/" + id }

// A lastDelivery is the latest delivery of a webhook.
type lastDelivery struct {
	ID, Event string
	Created   time.Time
	State     say.State
	Next      string // when it is tried next, "" if that is not known
}

// nextTry says when a delivery is tried next, "" if that is not known.
func (c *Console) nextTry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "next try " + say.Until(at, c.o.Now())
}

// A deliveryFilter says which deliveries are shown. Empty fields do not filter.
type deliveryFilter struct{ State, Event, From, Until string }

// Any reports whether something is filtered.
func (f deliveryFilter) Any() bool { return f != deliveryFilter{} }

// States are those that can be chosen.
func (deliveryFilter) States() []say.Kind { return say.DeliveryStates() }

// A deliveryRow is a line of the list of deliveries.
type deliveryRow struct {
	client.WebhookDelivery
	State   say.State
	Next    string // when it is tried next, "" if that is not known
	Project string // its name, "" if it is gone
	Answer  string // what the last attempt came to, "" before the first one
}

// Again reports whether a delivery of the list can be sent again.
func (v *webhookView) Again(d deliveryRow) bool {
	return v.Sends() && (d.Entry != nil || strings.HasPrefix(d.Event, "mail."))
}

func (c *Console) addDeliveries(r *http.Request, s *session, v *webhookView) {
	q := r.URL.Query()
	f := deliveryFilter{State: q.Get("state"), Event: strings.TrimSpace(q.Get("event")), From: q.Get("from"),
		Until: q.Get("until")}
	v.Filter, v.Page = f, number(q.Get("page"), 1)
	found, err := c.api(s).WebhookDeliveries(r.Context(), v.Name, query("state", f.State, "event", f.Event,
		"from", minutes(f.From), "to", minutes(f.Until), "page", itoa(v.Page), "limit", itoa(pageRows)))
	if err != nil {
		v.Problem = reason(err)
	}
	v.Total, v.Pages = found.Total, found.Pages
	v.Link = pages("webhooks/"+v.Name, "state", f.State, "event", f.Event, "from", f.From, "until", f.Until)
	names := c.projectNames(r.Context(), s)
	for _, d := range found.Rows {
		row := deliveryRow{WebhookDelivery: d, State: say.DeliveryState(d.State), Next: c.nextTry(moment(d.NextAttemptAt))}
		if d.ProjectID != nil {
			row.Project = names(*d.ProjectID)
		}
		if n := len(d.Attempts); n > 0 {
			row.Answer = say.Answered(&d.Attempts[n-1].WebhookOutcome)
		}
		v.Rows = append(v.Rows, row)
	}
}

// A deliveryView is a delivery with its request and what became of each attempt.
type deliveryView struct {
	Webhook  webhookRow
	Delivery records.HookDelivery
	State    say.State
	Project  string // its name, "" if it is gone or there is none
	Headers  []header
	Body     string // indented
	Sent     string // as it is sent
	Attempts []attemptRow
	Gap      bool
}

type header struct{ Name, Value string }

// An attemptRow is an attempt in words.
type attemptRow struct {
	Time         time.Time
	Seconds      int64 // webhook-timestamp
	Kind, Result string
	Answer       string
}

// Again reports whether the delivery can be sent again.
func (v *deliveryView) Again() bool { return v.WhyNot() == "" }

// WhyNot says why the delivery cannot be sent again, "" if it can.
func (v *deliveryView) WhyNot() string {
	switch {
	case v.Gap:
		return "A gap is not sent again."
	case v.Sent == "":
		return "It cannot be sent again: what it tells of is no longer kept."
	case !v.Webhook.Active:
		return "It cannot be sent again while the webhook is inactive."
	case !v.Webhook.Sends():
		return "It cannot be sent again while the webhook is switched off."
	}
	return ""
}

func (c *Console) showDelivery(w http.ResponseWriter, r *http.Request, s *session) error {
	of, err := c.webhookOf(r, s)
	if err != nil {
		return err
	}
	if !of.Delivers {
		return &failure{Status: http.StatusServiceUnavailable, Message: of.Why}
	}
	request, err := c.o.Webhooks.Request(of.Name, r.PathValue("id"))
	if catalog.IsNotFound(err) {
		return &failure{Status: http.StatusNotFound, Message: "There is no such delivery. They are kept for a week, " +
			"and the latest 10,000 of a webhook; tests are not kept."}
	}
	if err != nil {
		return &failure{Status: http.StatusServiceUnavailable, Message: say.AsSentence(err.Error())}
	}
	v := c.deliveryOf(&request)
	v.Webhook = of.webhookRow
	if d := &v.Delivery; d.Project != 0 {
		v.Project = c.projectNames(r.Context(), s)(d.Project)
	}
	return c.render(w, r, s, http.StatusOK, "delivery", "Delivery to "+of.Name, v)
}

// deliveryOf puts a delivery into words.
func (c *Console) deliveryOf(request *webhook.Request) *deliveryView {
	d := &request.HookDelivery
	v := &deliveryView{Delivery: *d, State: say.DeliveryState(d.State),
		Gap: d.Entry == 0 && d.Mail == 0}
	for _, name := range []string{"Content-Type", "User-Agent", "Webhook-Id"} {
		v.Headers = append(v.Headers, header{strings.ToLower(name), request.Header.Get(name)})
	}
	if v.Sent = string(request.Body); v.Sent != "" {
		v.Body = indented(request.Body)
	}
	for _, a := range d.Attempts {
		row := attemptRow{Time: a.Time, Seconds: a.Time.Unix(), Kind: "good", Answer: a.Answer}
		o := client.WebhookOutcome{Millis: a.Took.Milliseconds()}
		if a.Status != 0 {
			o.Status = &a.Status
		}
		if a.Error != "" {
			o.Error, row.Kind = &a.Error, "bad"
		}
		row.Result = say.Answered(&o)
		v.Attempts = append(v.Attempts, row)
	}
	return v
}
