package say_test

import (
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
)

func TestAnswered(t *testing.T) {
	f := func(status int, ms int64, err, want string) {
		t.Helper()
		o := client.WebhookOutcome{Millis: ms}
		if status != 0 {
			o.Status = &status
		}
		if err != "" {
			o.Error = &err
		}
		if got := say.Answered(&o); got != want {
			t.Errorf("%d %q: %s, want %s", status, err, got, want)
		}
	}
	f(204, 31, "", "The receiver took it with 204 after 31 ms.")
	f(500, 1250, "the receiver answered 500", "The receiver answered 500 after 1.2 s: it has failed.")
	f(418, 5, "the receiver answered 418", "The receiver answered 418 after 5 ms.")
	f(0, 15000, "no answer within 15s", "No answer within 15s.")
	f(0, 0, "", "No answer came.")
}

func TestHookState(t *testing.T) {
	now := time.Now()
	f := func(h say.Hook, want string) {
		t.Helper()
		if got := say.HookState(&h).Text; got != want {
			t.Errorf("%+v is %s, want %s", h, got, want)
		}
	}
	f(say.Hook{}, "inactive")
	f(say.Hook{Known: true, OffSince: now}, "inactive")
	f(say.Hook{Active: true}, "active")
	f(say.Hook{Active: true, Known: true}, "on")
	f(say.Hook{Active: true, Known: true, FailingSince: now, Waiting: 1}, "failing")
	f(say.Hook{Active: true, Known: true, OffSince: now, FailingSince: now, Waiting: 1}, "switched off")
	for n, want := range map[int]string{0: "", 1: "1 project waits", 2: "2 projects wait"} {
		if got := say.Waits(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
