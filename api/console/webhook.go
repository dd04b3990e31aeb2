package console

import (
	"net/http"
	"slices"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

var noWebhook = &failure{Status: http.StatusNotFound, Message: "There is no such webhook."}

// A webhookView is a webhook with its deliveries.
type webhookView struct {
	webhookRow
	deliverer
	Filter      deliveryFilter
	Rows        []deliveryRow
	Total       int
	Page, Pages int
	Link        string
	Problem     string // why no deliveries are shown
	Overlaps    []overlap
	Tested      *client.WebhookTest
	Failed      *failure // why what the person wanted was not done
}

// An overlap is how long the older secrets stay after a rotation.
type overlap struct{ Value, Text, Says string }

// overlaps are the choices, the usual one first.
var overlaps = []overlap{{"24h", "for 24 hours", "stay good for 24 hours"}, {"7d", "for 7 days", "stay good for 7 days"},
	{"30d", "for 30 days", "stay good for 30 days"}, {"1h", "for an hour", "stay good for an hour"},
	{"0s", "no longer", "end at once"}}

// webhookOf finds the webhook that a path names.
func (c *Console) webhookOf(r *http.Request, s *session) (v webhookView, err error) {
	list, err := c.webhookList(r.Context(), s)
	if err != nil {
		return v, err
	}
	i := slices.IndexFunc(list, func(w client.Webhook) bool { return w.Name == r.PathValue("name") })
	if i < 0 {
		return v, noWebhook
	}
	all, d := c.hookStatus(r.Context())
	return webhookView{webhookRow: c.rowOf(&list[i], all), deliverer: d, Overlaps: overlaps}, nil
}

// TestSays says what has become of the test.
func (v *webhookView) TestSays() string { return say.Answered(&v.Tested.WebhookOutcome) }

func (c *Console) showWebhook(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.webhookOf(r, s)
	if err != nil {
		return err
	}
	return c.renderWebhook(w, r, s, &v)
}

// renderWebhook adds the deliveries to a view, and answers with the page.
func (c *Console) renderWebhook(w http.ResponseWriter, r *http.Request, s *session, v *webhookView) error {
	if v.Delivers {
		c.addDeliveries(r, s, v)
	}
	status := http.StatusOK
	if v.Failed != nil {
		status = v.Failed.Status
	}
	return c.render(w, r, s, status, "webhook", "Webhook "+v.Name, v)
}

// webhookAction does what a button of a webhook's page says. What changes the files becomes a draft.
func (c *Console) webhookAction(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.webhookOf(r, s)
	if err != nil {
		return err
	}
	api, name, done := c.api(s), v.Name, ""
	switch do := r.PostFormValue("do"); do {
	case "on", "off", "remove", "rotate":
		return c.draftWebhook(w, r, s, do, name)
	case "test":
		var tested client.WebhookTest
		if tested, err = api.TestWebhook(r.Context(), name); err == nil {
			v.Tested = &tested
			return c.renderWebhook(w, r, s, &v)
		}
	case "resume":
		done = "The webhook " + name + " goes on, with the delivery that was refused."
		_, err = api.ResumeWebhook(r.Context(), name)
	case "again":
		done = "The delivery is sent again."
		_, err = api.ReplayWebhook(r.Context(), name, client.WebhookReplay{ID: r.PostFormValue("id")})
	case "replay":
		done, err = replay(r, api, name)
	default:
		err = &failure{Status: http.StatusBadRequest, Message: "The form does not say what to do."}
	}
	if err != nil {
		v.Failed = failureOf(err)
		return c.renderWebhook(w, r, s, &v)
	}
	s.say(done)
	return seeOther(w, r, webhookPage(name))
}

// replay sends the events of a time again.
func replay(r *http.Request, api *client.Client, name string) (done string, err error) {
	q := client.WebhookReplay{From: minutes(r.PostFormValue("from")), To: minutes(r.PostFormValue("until"))}
	if q.From == "" {
		return "", &failure{Status: http.StatusBadRequest,
			Message: "“From” is required: events are sent again from that time on."}
	}
	n, err := api.ReplayWebhook(r.Context(), name, q)
	if n == 0 {
		return "Nothing of that time is for the webhook.", err
	}
	return "Sent again: " + catalog.Count(n, "event") + ", one after the other.", err
}

// draftWebhook prepares a change of a webhook.
func (c *Console) draftWebhook(w http.ResponseWriter, r *http.Request, s *session, do, name string) error {
	d := &draft{kind: "webhook", id: name, Back: webhookPage(name)}
	d.edit = client.Edit{Object: client.Object{Kind: catalog.KindWebhook, Key: name}, Verb: client.Save}
	switch do {
	case "rotate":
		i := slices.IndexFunc(overlaps, func(o overlap) bool { return o.Value == r.PostFormValue("overlap") })
		if i < 0 {
			return &failure{Status: http.StatusBadRequest, Message: "The form does not say how long the older secrets stay."}
		}
		d.Title = "Rotate the secret of " + name + " (the older ones " + overlaps[i].Says + ")"
		d.edit.Verb, d.edit.Fields = client.Rotate, map[string]any{"overlap": overlaps[i].Value}
	case "remove":
		d.Title, d.Back, d.edit.Verb = "Remove the webhook "+name, webhookPage(""), client.Delete
	default:
		d.Title = "Switch the webhook " + name + " " + do
		d.edit.Fields = map[string]any{"active": do == "on"}
	}
	if d.edit.Verb != client.Rotate { // which is right for any state
		state, err := c.api(s).State(r.Context(), d.edit.Object)
		if err != nil {
			return err
		}
		d.edit.IfMatch = state.ETag
	}
	if err := c.prepare(r.Context(), s, d); err != nil {
		return err
	}
	return seeOther(w, r, d.page())
}
