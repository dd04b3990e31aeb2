package main

import (
	"os"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// TestQueueWaitsForTheFiles moves a project's mail to another server while nothing runs. Queued mail goes there, and
// nothing more to the old server, which the store still names.
func TestQueueWaitsForTheFiles(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	old, fresh := testrig.NewSink(t), testrig.NewSink(t)
	release := old.Hold()
	r := idleRig(t, t.TempDir(), map[string]string{"post.hcl": postFile(old, "")})
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	job := &mailJob{mark: "moved"}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		job.run(r)
	}()
	testrig.Eventually(t, "the old server has it", func() bool { return old.Counts().Held > 0 })
	r.kill()
	<-answered
	release()
	must(t, os.WriteFile(r.dir+"/projects.d/post.hcl", []byte(postFile(fresh, "")), 0o644))
	r.start()
	project := r.idOf("post")
	r.mailsEnd()
	if entries := r.entries(project, time.Unix(0, 0)); len(entries) != 1 || entries[0].Status != "SENT" || !entries[0].Uncertain {
		t.Errorf("%+v", entries)
	}
	if n := old.Counts().Held; n != 1 {
		t.Errorf("%d mails went to the server that is not the project's any more", n)
	}
	if got := fresh.Letters(); len(got) != 1 {
		t.Errorf("the new server has %d mails", len(got))
	}
}
