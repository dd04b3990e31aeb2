package main

import (
	"testing"

	"fingerpost/bench/wire"
)

func TestJudgeSend(t *testing.T) {
	sent := wire.Answer{Status: 200, Body: []byte(`{"success":true,"message":"mail sent","data":{"sent":true,"logId":1},"timestamp":""}`)}
	queued := wire.Answer{Status: 202, Body: []byte(`{"success":true,"message":"mail queued","data":{"sent":false,"queued":true,"logId":1},"timestamp":""}`)}
	f := func(a wire.Answer, wantQueued, good bool) {
		t.Helper()
		if err := judgeSend(a, wantQueued); (err == nil) != good {
			t.Errorf("judgeSend(%d %s, %v): %v", a.Status, a.Body, wantQueued, err)
		}
	}
	f(sent, false, true)
	f(sent, true, false)
	f(queued, true, true)
	f(queued, false, false)
	f(wire.Answer{Status: 200, Body: queued.Body}, false, false)
}
