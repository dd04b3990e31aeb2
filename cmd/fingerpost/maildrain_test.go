package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestMailDrain ends the server while a send waits for a slow SMTP server. The send is answered, the process ends in
// time, and the mail, which the server may have accepted, is uncertain and goes out after the next start.
func TestMailDrain(t *testing.T) {
	testrig.Thorough(t)
	for name, c := range map[string]struct {
		signals  int
		grace    string
		answered bool // for sure; without grace the answer and the end of the connection race
		exit     int
		most     time.Duration // that the end may take, on a machine that is not busy
	}{
		"in order":      {1, "2s", true, cli.ExitOK, 8 * time.Second},
		"without grace": {1, "0s", false, cli.ExitOK, 6 * time.Second},
		"second signal": {2, "60s", false, cli.ExitFailed, 2 * time.Second},
		"killed":        {0, "60s", false, -1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testrig.NewSink(t)
			release := s.Hold()
			r := idleRig(t, t.TempDir(), map[string]string{"post.hcl": postFile(s, "")})
			r.flags = []string{"--smtp-allow", "127.0.0.0/8", "--shutdown-grace", c.grace, "--mail-budget", "50s"}
			r.start()
			job := &mailJob{mark: "slow"}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				job.run(r)
			}()
			testrig.Eventually(t, "the mail is there", func() bool { return s.Counts().Held > 0 })
			begun := time.Now()
			for i := range c.signals {
				if i > 0 {
					err := poll(testrig.Patience, func() error {
						if !strings.Contains(r.logged(), `"draining"`) {
							return errors.New("it does not drain")
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				must(t, r.cmd.Process.Signal(syscall.SIGTERM))
			}
			if c.signals == 0 {
				r.kill()
			}
			<-r.exited
			testrig.AtMost(t, time.Since(begun), c.most+20*time.Second)
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(r.err, &exit) {
				code = exit.ExitCode()
			}
			if <-answered; code != c.exit || c.answered && job.status != 202 || job.status != 202 && job.status != 0 {
				t.Errorf("exit code %d, the send was answered %d: %s", code, job.status, r.logged())
			}
			release()
			r.flags = r.flags[:2]
			r.start()
			project := r.idOf("post")
			r.mailsEnd()
			entries := r.entries(project, time.Unix(0, 0))
			if len(entries) != 1 || entries[0].Status != "SENT" || !entries[0].Uncertain || job.logID != 0 && job.logID != entries[0].ID {
				t.Errorf("%+v", entries)
			}
			letters := s.Letters()
			if len(letters) == 0 || slices.ContainsFunc(letters, func(l testrig.Letter) bool { return l.Text != letters[0].Text }) {
				t.Errorf("the sink has %s", fmt.Sprint(letters))
			}
		})
	}
}
