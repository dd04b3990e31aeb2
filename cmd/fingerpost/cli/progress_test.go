package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: nothing in the first second, then one line with an estimate, which goes at the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := startProgress(&out, "files read")
		shown := func() string { // since the last call
			p.mu.Lock()
			defer p.mu.Unlock()
			defer out.Reset()
			return out.String()
		}
		p.Set(100, 1000)
		time.Sleep(progressAfter - time.Millisecond) // the clock of synctest, which waits for nobody
		synctest.Wait()
		if got := shown(); got != "" {
			t.Errorf("shown in the first second: %q", got)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got, want := shown(), "\r\x1b[Kfiles read: 100 of 1000, about 9s left"; got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
		p.Set(500, 1000)
		time.Sleep(progressAfter)
		synctest.Wait()
		if got, want := shown(), "\r\x1b[Kfiles read: 500 of 1000, about 2s left"; !strings.HasSuffix(got, want) {
			t.Errorf("shown %q, want %q at the end", got, want)
		}
		p.End()
		if got, want := shown(), "\r\x1b[K"; got != want {
			t.Errorf("at the end %q, want %q", got, want)
		}

		short := startProgress(&out, "files read")
		short.Set(1, 1)
		short.End()
		if out.Len() != 0 {
			t.Errorf("short work shows %q", &out)
		}
	})
	var none *Progress
	none.Set(1, 2)
	none.End()
}
