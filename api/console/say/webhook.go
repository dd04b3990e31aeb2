package say

import (
	"strconv"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// DeliveryStates lists the states of deliveries with the words for them, for people who look for some.
func DeliveryStates() []Kind {
	return []Kind{{"pending", "Not sent yet"}, {"failing", "Failing"}, {"delivered", "Delivered"}, {"dead", "Given up"}}
}

// DeliveryState says where a delivery of a webhook is.
func DeliveryState(state string) State {
	switch state {
	case "delivered":
		return State{"good", "Delivered"}
	case "dead":
		return State{"bad", "Given up"}
	case "failing":
		return State{"bad", "Failing"}
	case "pending":
		return State{"warn", "Not sent yet"}
	}
	return State{"", state}
}

// httpWords are what the statuses mean that receivers often answer.
var httpWords = map[int]string{
	301: "it leads elsewhere", 302: "it leads elsewhere", 307: "it leads elsewhere", 308: "it leads elsewhere",
	400: "it does not understand the event", 401: "it does not accept the signature, or wants a key", 403: "it refuses",
	404: "nothing is at the address", 405: "the address takes no POST", 410: "it wants no more events",
	413: "the event is too large for it", 429: "too many events for it", 500: "it has failed",
	502: "it cannot be reached behind its proxy", 503: "it is not available", 504: "it does not answer its proxy",
}

// Answered says what has become of a request to the receiver of a webhook, as a sentence.
func Answered(o *client.WebhookOutcome) string {
	took := " after " + Millis(o.Millis)
	switch {
	case o.Status == nil && o.Error != nil:
		return AsSentence(*o.Error)
	case o.Status == nil:
		return "No answer came."
	case *o.Status/100 == 2:
		return "The receiver took it with " + strconv.Itoa(*o.Status) + took + "."
	}
	text := "The receiver answered " + strconv.Itoa(*o.Status) + took
	if why := httpWords[*o.Status]; why != "" {
		text += ": " + why
	}
	return text + "."
}

// Millis writes a short time.
func Millis(ms int64) string {
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
}

// A Hook is how a webhook does.
type Hook struct {
	Active       bool
	Known        bool      // what follows is known
	OffSince     time.Time // zero: it is on
	Waiting      int       // projects
	FailingSince time.Time // zero: nothing has failed since the last success
}

// HookState says in one or two words how a webhook does.
func HookState(h *Hook) State {
	switch {
	case !h.Active:
		return State{"", "inactive"}
	case !h.Known:
		return State{"", "active"}
	case !h.OffSince.IsZero():
		return State{"bad", "switched off"}
	case !h.FailingSince.IsZero() && h.Waiting > 0:
		return State{"warn", "failing"}
	}
	return State{"good", "on"}
}

// Waits says how much waits, "" for nothing.
func Waits(projects int) string {
	if projects == 0 {
		return ""
	}
	return catalog.Count(projects, "project") + map[bool]string{true: " waits", false: " wait"}[projects == 1]
}
