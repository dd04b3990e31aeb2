package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/records"
)

// A hookPage is the page of a webhook, on which a test waits and presses buttons.
type hookPage struct {
	*guest
	path string
}

// until opens the page until it has all texts.
func (p *hookPage) until(what string, texts ...string) {
	p.t.Helper()
	testrig.Eventually(p.t, what, func() bool {
		p.send(p.path, nil)
		return p.has(texts...)
	})
}

func (p *hookPage) has(texts ...string) bool {
	for _, want := range texts {
		if !strings.Contains(p.page, want) {
			return false
		}
	}
	return true
}

// press sends the form of the page's buttons.
func (p *hookPage) press(do string, more ...string) {
	p.t.Helper()
	p.send(p.path, nil)
	sent, _ := p.controls(p.path)
	sent = url.Values{"token": sent["token"], "do": {do}}
	for i := 0; i < len(more); i += 2 {
		sent.Set(more[i], more[i+1])
	}
	p.send(p.path, sent)
}

func (p *hookPage) expects(status int, texts ...string) {
	p.t.Helper()
	for _, want := range texts {
		if p.status != status || !strings.Contains(p.page, want) {
			p.t.Errorf("%d, want %d with %q: %s", p.status, status, want, visibleText(p.page))
		}
	}
}

// TestConsoleDeliveries: a person sees what a receiver was sent and what it answered, tests it, resumes it, and sends events
// again.
func TestConsoleDeliveries(t *testing.T) {
	e := newEventDesk(t)
	e.hook(t, "crm", `, "events": ["project.*"]`)
	p := &hookPage{newDeliveringRig(t, e.desk, e.live, false).signIn(t, e.key), "/console/webhooks/crm"}
	p.until("the webhook is known", ">on<", "None is kept")
	e.change(t, "Two")
	p.until("it is delivered", ">Delivered<", "The receiver took it with 204", "1 kept")
	id := e.ids()[0]
	p.send("/console/webhooks/crm/deliveries/"+id, nil)
	p.expects(200, id, "&#34;type&#34;: &#34;project.update&#34;", "user-agent: fingerpost/1.2.3", "webhook-timestamp: ", "Send again")
	if strings.Contains(p.page, "whsec_") || strings.Contains(p.page, "v1,"+id) {
		t.Error("a secret or a signature is shown")
	}
	p.send("/console/lookup?domain="+id, nil)
	if p.guest.path != "/console/webhooks/crm/deliveries/"+id {
		t.Errorf("the id of a delivery leads to %s", p.guest.path)
	}
	p.send("/console/webhooks/crm/deliveries/000000000000.1.crm", nil)
	p.expects(404, "There is no such delivery.")
	p.press("again", "id", id)
	p.expects(200, "The delivery is sent again.")
	p.until("it came again", "2 kept")
	testrig.Eventually(t, "the replay has ended", func() bool {
		p.press("again", "id", "000000000000.1.crm")
		return p.status != 409
	})
	p.expects(404, "No such delivery")
	p.send("/console/webhooks", nil)
	p.expects(200, `>Delivered<`, "project.update", e.url)

	for query, want := range map[string]string{"?state=dead": "No delivery matches.", "?event=project.create": "No delivery matches.", "?state=delivered": "2 kept",
		"?event=proejct.update": "did you mean project.update?", "?state=new": "must be one of", "?from=2020-01-01T09:30&until=2020-01-02T09:30": "0 kept", "?page=2": "2 kept"} {
		p.send(p.path+query, nil)
		p.expects(200, want)
	}

	p.press("test")
	p.expects(200, ">delivered<", "The receiver took it with 204")
	e.set(answers(500, "<oops>"))
	p.press("test")
	p.expects(200, ">not delivered<", "The receiver answered 500", "it has failed", "&lt;oops&gt;", "2 kept")
	e.set(func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600") // so that no repetition comes in between
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	e.change(t, "Three")
	p.until("it fails", ">failing<", ">Failing<", "next try in ", "it is not available", "1 project waits for the receiver")
	p.send("/console/webhooks", nil)
	p.expects(200, ">failing<", "1 project waits", "first failed")
	p.press("resume")
	p.expects(200, "The webhook crm goes on") // it was on, and is
	e.set(answers(410, ""))
	p.press("again", "id", id)
	p.until("it is off", "It has switched itself off", "the receiver answered 410: it wants no more events", "Resume")
	if p.has(`value="again"`) || p.has(`value="replay"`) {
		t.Error("a webhook that is off offers to send again")
	}
	p.send("/console/webhooks/crm/deliveries/"+id, nil)
	p.expects(200, "It cannot be sent again while the webhook is switched off.")
	p.press("replay", "from", "2020-01-01T00:00")
	p.expects(409, "The webhook is off")
	e.set(nil)
	p.press("resume")
	p.expects(200, "The webhook crm goes on")
	p.until("all is delivered", "4 kept", "nothing")
	p.press("replay")
	p.expects(400, "“From” is required")
	p.press("replay", "from", "soon")
	p.expects(400, "must be a time in UTC such as")
	p.press("replay", "from", "2020-01-01T00:00", "until", "2020-01-02T00:00")
	p.expects(200, "Nothing of that time is for the webhook.")
	p.press("replay", "from", "2020-01-01T00:00")
	p.expects(200, "Sent again: 2 events")
	p.until("they came again", "6 kept")
	p.press("dance")
	p.expects(400, "The form does not say what to do.")
	p.send("/console/changes?action=webhook.replay", nil)
	p.expects(200, "sent 2 events again to the webhook", `<a href="/console/webhooks/crm">crm</a>`)
	e.end()
	p.send(p.path, nil)
	p.expects(200, "How webhooks do is not known at the moment")
	p.send("/console/webhooks", nil)
	p.expects(200, "How webhooks do is not known at the moment")
}

// TestConsoleDeliversNothing: an edge, and a service that delivers no events, show the settings, say why there is no more, and
// offer nothing that would be refused.
func TestConsoleDeliversNothing(t *testing.T) {
	for edge, want := range map[bool]string{true: "This is an edge: its authority delivers events", false: "it runs with --webhooks=false"} {
		d := newWebhookDesk(t)
		d.askBody("POST", webhooksPath, d.key, `{"name": "crm", "url": "https://crm.example/x"}`).check(t, 201, "")
		p := &hookPage{newDeliveringRig(t, d, nil, edge).signIn(t, d.key), "/console/webhooks/crm"}
		p.send("/console/webhooks", nil)
		p.expects(200, want, ">active<", "https://crm.example/x", "not known")
		p.send(p.path, nil)
		p.expects(200, want, ">active<", "Rotate the secret", "Edit")
		if p.has(`value="test"`) || p.has("Deliveries") || p.has(`value="resume"`) {
			t.Errorf("edge %v: what cannot be is offered: %s", edge, visibleText(p.page))
		}
		p.send(p.path+"/deliveries/1.2.crm", nil)
		p.expects(503, want)
		p.press("test")
		p.expects(503, "This server delivers no events")
	}
}

// stillHooks are webhooks that stand still, with something in each field.
type stillHooks struct {
	status  webhook.Status
	problem string
}

func (s stillHooks) Status(context.Context) ([]webhook.Status, string, error) {
	return []webhook.Status{s.status}, s.problem, nil
}

func (s stillHooks) LastDelivery(string) (d records.HookDelivery, found bool, err error) {
	return records.HookDelivery{}, false, nil
}

func (s stillHooks) Request(_, id string) (webhook.Request, error) {
	return webhook.Request{HookDelivery: records.HookDelivery{ID: id, Event: "gap", State: records.HookDead, Created: time.Now(), Project: 4711,
		Attempts: []records.HookAttempt{{Time: time.Now(), Error: "it is no longer kept"}}}}, nil
}

// TestConsoleHookStates: everything that is known of a webhook is told.
func TestConsoleHookStates(t *testing.T) {
	e := newEventDesk(t)
	e.hook(t, "crm", "")
	ago := time.Now().Add(-3 * time.Hour)
	status := webhook.Status{Name: "crm", Waiting: 2, Failing: 1, Oldest: ago, Behind: 1234, DeadAt: ago, GapAt: ago, FailingSince: ago}
	p := &hookPage{newDeliveringRig(t, e.desk, stillHooks{status, "the disk is full"}, false).signIn(t, e.key), "/console/webhooks/crm"}
	p.send(p.path, nil)
	p.expects(200, "Nothing is delivered at the moment, and all events wait: the disk is full.", "2 projects wait for the receiver", "3 hours ago", "changes",
		"Last given up", "Last gap", ">failing<")
	p.send("/console/webhooks", nil)
	p.expects(200, "the disk is full", "2 projects wait, the oldest event", "first failed", "none is kept")
	p.send(p.path+"/deliveries/x", nil)
	p.expects(http.StatusOK, "A gap is not sent again.", "What it had in detail is not kept.", "It is no longer kept.", "4711, which is gone")
}
