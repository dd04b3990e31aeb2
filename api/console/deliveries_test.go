package console

import (
	"testing"

	"fingerpost/api/console/say"
	"fingerpost/resolver/records"
)

func TestDeliveryState(t *testing.T) {
	f := func(state, want, kind string) {
		t.Helper()
		if s := say.DeliveryState(state); s.Text != want || s.Kind != kind {
			t.Errorf("%s: %+v", state, s)
		}
	}
	f(records.HookPending, "Not sent yet", "warn")
	f(records.HookDelivered, "Delivered", "good")
	f(records.HookDead, "Given up", "bad")
	f(records.HookFailing, "Failing", "bad")
	listed := say.DeliveryStates()
	for i, state := range records.HookStates {
		if say.DeliveryState(state).Kind == "" || len(listed) != len(records.HookStates) {
			t.Errorf("%d: %s has no words", i, state)
		}
	}
	for _, k := range listed {
		if got := say.DeliveryState(k.Action); got.Text != k.Text {
			t.Errorf("%s is called %q and %q", k.Action, k.Text, got.Text)
		}
	}
}
