package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// postFile is a project whose mail goes to a sink.
func postFile(s *testrig.Sink, more string) string {
	return fmt.Sprintf(`project "post" {
  name   = "The Post"
  status = "ACTIVE"
  domain "post.example" {}
  service_settings { mail_enabled = true }
  smtp_config {
    host       = "127.0.0.1"
    port       = %d
    from_email = "hello@post.example"
    %s
  }
  template "CODE" {
    name             = "Code"
    subject_template = "Your code"
    body_text        = "Your code is {{code}}."
  }
}
`, s.Port(), more)
}

// mail makes a call of the mail API. The status is 0 if no answer came.
func (r *rig) mail(method, path, key, body string, headers ...string) (got reply) {
	req, err := http.NewRequest(method, r.url+"/api/mail"+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return got
	}
	signMail(req, r.keys[key])
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return got
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return got
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

// A mailJob is a mail that a client sends, and the answer that it got.
type mailJob struct {
	mark   string
	keyed  bool // with an Idempotency-Key: it may be asked again
	status int  // of the answer, 0 for none
	logID  int64
}

func (j *mailJob) run(r *rig) {
	headers := []string{}
	if j.keyed {
		headers = append(headers, "Idempotency-Key: "+j.mark)
	}
	got := r.mail("POST", "/send/raw", "mail", fmt.Sprintf(`{"domain":"post.example","toEmail":"%s@example.com","subject":"%s","bodyText":"This is %s."}`, j.mark, j.mark, j.mark), headers...)
	if j.status = got.status; j.status == 0 {
		return
	}
	var answer struct{ Data struct{ LogID int64 } }
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status > 202 {
		r.t.Errorf("%s: %d %s", j.mark, got.status, got.body)
	}
	j.logID = answer.Data.LogID
}

// entries reads a project's mail log from a moment on.
func (r *rig) entries(project int64, from time.Time) (all []client.LoggedMail) {
	r.t.Helper()
	for page := 1; ; page++ {
		got := r.mail("GET", fmt.Sprintf("/projects/%d/logs?limit=100&page=%d&order=asc&from=%s", project, page, catalog.Moment(from)), "all", "")
		var answer struct {
			Data []client.LoggedMail
			Meta struct{ TotalPages int }
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK {
			r.t.Fatalf("%d %s: %v", got.status, got.body, err)
		}
		if all = append(all, answer.Data...); page >= answer.Meta.TotalPages {
			return all
		}
	}
}

// mailClients gives jobs to some clients at once; each stops at its first job without an answer. done gets a value for
// each answer. It returns the jobs that no client took.
func (r *rig) mailClients(clients int, jobs []*mailJob, done chan<- struct{}) (left []*mailJob) {
	queue := make(chan *mailJob, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for j := range queue {
				if j.run(r); j.status == 0 {
					return
				}
				done <- struct{}{}
			}
		})
	}
	all.Wait()
	for j := range queue {
		left = append(left, j)
	}
	return left
}

// mailsEnd waits until no mail is being sent any more.
func (r *rig) mailsEnd() {
	r.t.Helper()
	err := poll(testrig.Patience, func() error {
		var status struct{ Mail struct{ Queued int } }
		res, err := http.Get(r.ops + "/status")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&status); err != nil || status.Mail.Queued != 0 {
			return fmt.Errorf("%d mails are queued, %v", status.Mail.Queued, err)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestMailKilledAtRandom kills the server in the middle of sends, again and again. Every accepted mail reaches an end;
// a SENT mail is at the sink; a mail that is there twice is marked uncertain, and both copies are equal.
func TestMailKilledAtRandom(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	s := testrig.NewSink(t)
	r := idleRig(t, t.TempDir(), map[string]string{"post.hcl": postFile(s, "")})
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	project := r.idOf("post")
	const clients = 16
	answered, unanswered, uncertain, twice := 0, 0, 0, 0
	for round := range testrig.Size(t, 100, 2) {
		begun := time.Now().Add(-time.Millisecond)
		var jobs []*mailJob
		for i := range testrig.Size(t, 250, 60) {
			jobs = append(jobs, &mailJob{mark: fmt.Sprintf("r%d-%d", round, i), keyed: i%2 == 0})
		}
		killed, done := make(chan struct{}), make(chan struct{}, len(jobs))
		go func() {
			defer close(killed)
			for range rand.IntN(len(jobs) - clients) {
				<-done
			}
			<-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond) // anywhere within a send
			r.kill()
		}()
		left := r.mailClients(clients, jobs, done)
		<-killed
		r.start()
		for _, j := range jobs {
			if j.status == 0 && !slices.Contains(left, j) {
				unanswered++
				if j.keyed {
					left = append(left, j)
				}
			}
		}
		if rest := r.mailClients(clients, left, make(chan struct{}, len(left))); len(rest) > 0 {
			t.Fatalf("round %d: %d jobs are left without a kill", round, len(rest))
		}
		r.mailsEnd()
		one, two := r.checkMails(s, project, begun, jobs)
		uncertain, twice = uncertain+one, twice+two
		for _, j := range jobs {
			if j.status != 0 {
				answered++
			}
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	testrig.Figure(t, "%d mails answered, %d requests without an answer, %d uncertain, %d at the sink twice", answered, unanswered, uncertain, twice)
	if unanswered == 0 {
		t.Error("no request was cut off; this shows nothing")
	}
}

// checkMails compares the log of a round with its jobs and the sink.
func (r *rig) checkMails(s *testrig.Sink, project int64, from time.Time, jobs []*mailJob) (uncertain, twice int) {
	r.t.Helper()
	letters := map[string][]testrig.Letter{}
	for _, l := range s.Letters() {
		letters[l.MessageID()] = append(letters[l.MessageID()], l)
	}
	byMark := map[string][]client.LoggedMail{}
	for _, e := range r.entries(project, from) {
		byMark[e.Subject] = append(byMark[e.Subject], e)
		at := letters[e.MessageID]
		switch {
		case e.Status != "SENT":
			r.t.Errorf("%+v has not been sent", e)
		case len(at) == 0:
			r.t.Errorf("%+v is not at the sink", e)
		case len(at) > 1 && !e.Uncertain:
			r.t.Errorf("%+v is at the sink %d times, and not uncertain", e, len(at))
		}
		for _, l := range at {
			if l.Text != at[0].Text || l.To != e.ToEmail {
				r.t.Errorf("%+v was delivered to %s as\n%s\nand to %s as\n%s", e, at[0].To, at[0].Text, l.To, l.Text)
			}
		}
		if e.Uncertain {
			uncertain++
		}
		if len(at) > 1 {
			twice++
		}
	}
	for _, j := range jobs {
		entries := byMark[j.mark]
		if len(entries) > 1 || len(entries) == 0 && j.status != 0 {
			r.t.Errorf("%+v has %d entries", j, len(entries))
			continue
		}
		if j.status != 0 && entries[0].ID != j.logID {
			r.t.Errorf("%+v: the entry is %+v", j, entries[0])
		}
	}
	known := map[string]bool{}
	for _, all := range byMark {
		for _, e := range all {
			known[e.MessageID] = true
		}
	}
	for id, at := range letters {
		mark, _, _ := strings.Cut(at[0].To, "@")
		if slices.ContainsFunc(jobs, func(j *mailJob) bool { return j.mark == mark }) && !known[id] {
			r.t.Errorf("the sink has %s, of which the log knows nothing", at[0].Text)
		}
	}
	return uncertain, twice
}
