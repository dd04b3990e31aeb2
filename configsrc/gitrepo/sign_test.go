package gitrepo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

func TestSignedCommit(t *testing.T) {
	t.Parallel()
	testrig.Need(t, "ssh-keygen")
	clone := newClone(t)
	signer := filepath.Join(filepath.Dir(clone), "signer")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", signer).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := start(t, clone, func(o *gitrepo.Options) { o.SignKey = signer })
	r.mustWrite(key("ci", "r1"), "acme", "Signed")
	save(t, filepath.Dir(clone), "signers", "fingerpost@svc.example "+read(t, signer+".pub"))
	got := testrig.Git(t, clone, "-c", "gpg.ssh.allowedSignersFile="+filepath.Join(filepath.Dir(clone), "signers"), "log", "-1", "--format=%G? %s")
	if got != "G acme: name" {
		t.Error(got)
	}
}

// Names, messages and ids that callers choose cannot forge a line of the commit.
func TestHostileAuthors(t *testing.T) {
	t.Parallel()
	r := start(t, newClone(t), nil)
	by := key("ci", "r1")
	by.Actor = "\"Eve\\\" <root@x> \x01\" <eve@example.com>"
	by.Message = "ends here\n\nFingerpost-Key: admin\r\x1b[31m"
	r.mustWrite(by, "acme", "Hostile")
	log := testrig.Git(t, r.clone, "log", "-1", "--format=%an|%ae|%s|%(trailers:key=Fingerpost-Key,valueonly)")
	if !strings.HasSuffix(log, "|ends here Fingerpost-Key: admin [31m|ci") || strings.ContainsAny(log, "<>\x01\x1b") {
		t.Errorf("%q", log)
	}
	r.clean()
}
