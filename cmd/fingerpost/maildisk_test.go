package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// TestMailDiskFull fills the disk of the store with mail for an unreachable server: sends are refused before the store
// fails, resolve and the mail log go on, and once the server is back all mail goes out and sends are accepted again.
func TestMailDiskFull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	if !canMount() {
		t.Skip("needs root, to mount a small file system")
	}
	size := testrig.Size(t, 200, 140) // in MiB; sends leave 64 of them free, and as much again as the store has
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Fatalf("mount a tmpfs, which needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	var k testrig.Sink
	if err := k.Up(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(k.Addr())
	k.Down()
	defer k.Down()
	r := idleRig(t, t.TempDir(), map[string]string{"post.hcl": fmt.Sprintf(`project "post" {
  name   = "Post"
  status = "ACTIVE"
  domain "post.example" {}
  service_settings { mail_enabled = true }
  smtp_config {
    host       = "127.0.0.1"
    port       = %s
    from_email = "hello@post.example"
  }
}
`, port)})
	r.flags = []string{"--data", disk, "--smtp-allow", "127.0.0.0/8"}
	r.start()
	random := make([]byte, 300<<10)
	send := func() reply {
		for i := range random {
			random[i] = byte(rand.Uint32())
		}
		body, err := json.Marshal(map[string]string{"domain": "post.example", "toEmail": "ada@example.com", "subject": "s",
			"bodyText": base64.StdEncoding.EncodeToString(random)})
		if err != nil {
			t.Fatal(err)
		}
		return r.ask(http.MethodPost, "/api/mail/send/raw", "", string(body), "X-Internal-Service-Token: "+r.keys["mail"], "X-Internal-Service-Name: t")
	}
	accepted := 0
	for refused := 0; refused < 20; {
		switch got := send(); got.status {
		case http.StatusAccepted:
			accepted++
		case http.StatusTooManyRequests:
			refused++
			if got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "RATE_LIMITED") {
				t.Fatalf("%d %s %v", got.status, got.body, got.header)
			}
		default:
			t.Fatalf("after %d mails: %d %s", accepted, got.status, got.body)
		}
		if accepted > 1000 {
			t.Fatalf("1,000 mails of 400 kB are on a disk of %d MiB", size)
		}
	}
	if got := r.get("/api/platform/projects/resolve?domain=post.example"); got.status != http.StatusOK {
		t.Errorf("resolve: %d %s", got.status, got.body)
	}
	if log := r.logged(); !strings.Contains(log, "too little room on the disk that mail is stored on") {
		t.Error("the log does not say so")
	}
	if err := k.Up(); err != nil {
		t.Fatal(err)
	}
	// A mail whose fourth attempt met no server waits for up to six minutes; filling the disk takes long with -race.
	if err := poll(8*time.Minute, func() error {
		if n := len(k.Letters()); n < accepted {
			return fmt.Errorf("%d of %d mails have come", n, accepted)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := poll(testrig.Patience, func() error {
		if got := send(); got.status != http.StatusOK {
			return fmt.Errorf("with an empty queue: %d %s", got.status, got.body)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.logged(), "store on disk unavailable") {
		t.Error("the store has failed")
	}
	testrig.Figure(t, "%d mails", accepted)
}
