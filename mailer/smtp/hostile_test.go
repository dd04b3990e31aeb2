package smtp_test

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
)

// hostile servers, by what they do.
func hostile() map[string]row {
	limits := smtp.Limits{Connect: short, Greeting: short, TLS: short, Command: short, Data: short, Body: short, Dot: short, Quit: short}
	rows := map[string]row{
		"silence":                    {script: script(silence)},
		"silence to TLS":             {script: script(silence), server: withSSL},
		"flood of greeting":          {script: script(flood("220-hello\r\n"))},
		"flood of short lines":       {script: script(flood("220-\r\n"))},
		"flood without line ends":    {script: script(flood("220-hello "))},
		"flood of zeros":             {script: script(flood("\x00"))},
		"flood to TLS":               {script: script(flood("\x16\x03\x03\x40\x00")), server: withSSL},
		"flood of EHLO":              {script: script("220 hi", hear("EHLO"), flood("250-AUTH PLAIN\r\n"))},
		"flood of long EHLO":         {script: script("220 hi", hear("EHLO"), flood("250-AUTH "+strings.Repeat("PLAIN ", 600)+"\r\n"))},
		"flood at MAIL":              {script: script(greet, hear("MAIL"), flood("250-ok\r\n"))},
		"flood of replies":           {script: script(greet, flood("250 ok\r\n"))},
		"flood of challenges":        {script: script(greetLogin, hear("AUTH"), flood("334 "+strings.Repeat("AAAA", 900)+"\r\n")), server: withLogin},
		"flood at the dot":           {script: script(greet, envelope, message, flood("250-ok\r\n"))},
		"flood in the body":          {script: script(greet, envelope, flood("250-ok\r\n"))},
		"a byte at a time":           {script: script(trickle("220-hello\r\n", 20*time.Millisecond))},
		"a byte at a time to TLS":    {script: script(trickle("\x16\x03\x03\x00\x7a\x02", 20*time.Millisecond)), server: withSSL},
		"a byte at a time at MAIL":   {script: script(greet, hear("MAIL"), trickle("250-ok\r\n", 20*time.Millisecond))},
		"a byte at a time after dot": {script: script(greet, envelope, message, trickle("250-ok\r\n", 20*time.Millisecond))},
		"reads nothing":              {script: script(plain, envelope, stall), size: 12_000_000},
		"silence at QUIT":            {script: script(greet, "MAIL -> 550 no", silence)},
		"silence when idle":          {script: script(greet, takes, silence)},
		"goes at once":               {script: script(hangUp)},
		"goes in the handshake":      {script: script(part, hangUp), server: withSSL},
		"replies that never end":     {script: script("220 hi", "EHLO -> 250 hi", "MAIL -> 250 ok", "RCPT -> 250 ok", "DATA -> 354 go", flood("\r\n"))},
	}
	for name, r := range rows {
		r.limits = limits
		rows[name] = r
	}
	return rows
}

// TestHostile: whatever a server does, an attempt allocates at most 8 MiB, including this test's server, ends within
// its limits, and leaves no goroutine. It runs alone: it counts what the process allocates.
func TestHostile(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it waits for the limits")
	}
	const most = 8 << 20
	big := bytes.Repeat([]byte("0123456789\r\n"), 1_000_000)
	for name, r := range hostile() {
		t.Run(name, func(t *testing.T) {
			peer := newScripted(t, nil, r.script)
			tr := newTestTransport(t, smtp.TransportOptions{Limits: r.limits, Idle: short})
			server := peer.server()
			if r.server != nil {
				r.server(&server)
			}
			message := testMessage
			if r.size > 0 {
				message = big
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			out := tr.Send(t.Context(), server, testEnvelope, message)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > most {
				t.Errorf("%.1f MiB", float64(used)/(1<<20))
			} else {
				t.Logf("%.2f MiB, %v", float64(used)/(1<<20), took.Round(time.Millisecond))
			}
			testrig.AtMost(t, took, 20*short) // the sum of the limits is about ten times that
			if out.Class == smtp.Accepted && name != "silence when idle" {
				t.Errorf("%+v", out)
			}
			tr.Close()
			testrig.Eventually(t, "no goroutine is left", func() bool { return goroutines() == "" })
		})
	}
}

// goroutines returns the stacks of goroutines that package mailer has started or that run in it.
func goroutines() string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	var mine []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, "fingerpost/mailer/smtp.") {
			mine = append(mine, stack)
		}
	}
	return strings.Join(mine, "\n\n")
}
