package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// Requests without a good key cannot fill the disk through the access log: a few of their failures are logged one by
// one, and the rest are counted. Requests with a key are always logged.
func TestAnonymousFailuresAreLoggedInPart(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t)
	each := testrig.Part(300)
	begun := time.Now()
	w := h.dial()
	defer w.Close()
	for range each {
		w.send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n" + "GET /api/platform/projects/1 HTTP/1.1\r\nHost: x\r\n\r\n" +
			"GET /api/platform/projects/9 HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + "\r\n")
		w.answer("GET").check(t, 404, "NOT_FOUND")
		w.answer("GET").check(t, 401, "UNAUTHORIZED")
		w.answer("GET").check(t, 404, "NOT_FOUND")
	}
	for range each {
		w := h.dial()
		w.send("X\r\n\r\n")
		w.answer("GET").check(t, 400, "VALIDATION_ERROR")
		w.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil { // what was not logged by then is counted
		t.Fatal(err)
	}
	keyed, anonymous, counted := 0, 0, 0
	lines := bufio.NewScanner(strings.NewReader(h.log.String()))
	for lines.Scan() {
		var line struct {
			Msg, Key string
			Status   int
			Count    int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch {
		case line.Msg == "request" && line.Key != "":
			keyed++
		case line.Msg == "request":
			anonymous++
		case line.Msg == "failed requests without a good key were not logged":
			counted += line.Count
		}
	}
	if keyed != each {
		t.Errorf("%d of %d failures with a good key are logged", keyed, each)
	}
	if most := 20 * (int(time.Since(begun).Seconds()) + 2); anonymous < 20 || anonymous > most { // 20 a second
		t.Errorf("%d of %d failures without a key are logged one by one", anonymous, 3*each)
	}
	if anonymous+counted != 3*each {
		t.Errorf("%d failures without a key are logged and %d counted, of %d", anonymous, counted, 3*each)
	}
}
