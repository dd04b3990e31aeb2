package main

import (
	"os"
	"testing"
	"time"
)

// TestQueueWaitsForTheFiles moves a project's mail to another server while nothing runs. Queued mail goes there, and
// nothing more to the old server, which the store still names.
func TestQueueWaitsForTheFiles(t *testing.T) {
	t.Parallel()
	old, fresh := newSink(t), newSink(t)
	old.hold, old.holding = make(chan struct{}), make(chan struct{}, 100)
	r := idleRig(t, t.TempDir(), map[string]string{"post.hcl": postFile(old, "")})
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	job := &mailJob{mark: "moved"}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		job.run(r)
	}()
	<-old.holding
	r.kill()
	<-answered
	close(old.hold)
	must(t, os.WriteFile(r.dir+"/projects.d/post.hcl", []byte(postFile(fresh, "")), 0o644))
	r.start()
	project := r.idOf("post")
	r.mailsEnd()
	if entries := r.entries(project, time.Unix(0, 0)); len(entries) != 1 || entries[0].Status != "SENT" || !entries[0].Uncertain {
		t.Errorf("%+v", entries)
	}
	if n := len(old.holding); n != 0 {
		t.Errorf("%d mails went to the server that is not the project's any more", n)
	}
	if got := fresh.letters(); len(got) != 1 {
		t.Errorf("the new server has %d mails", len(got))
	}
}
