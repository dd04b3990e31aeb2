package smtp_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"fingerpost/cmd/testrig"
)

// newExim starts Debian's Exim with its own configuration and spool. It accepts mail for peer.example into its queue.
// Unpacking the package is enough: two mail servers cannot be installed together.
func newExim(t testing.TB) realServer {
	t.Helper()
	testrig.NeedRoot(t)
	exim := testrig.Need(t, "exim4")[0]
	dir := sharedDir(t)
	if _, err := user.Lookup("Debian-exim"); err != nil { // it insists on the name; this one is seen by it alone
		write(t, dir+"/passwd", "root:x:0:0::/:/bin/sh\nDebian-exim:x:65533:65533::/:/bin/false\n")
		write(t, dir+"/group", "root:x:0:\nDebian-exim:x:65533:\n")
	}
	r := realServer{clear: testrig.FreePort(t), starttls: testrig.FreePort(t), implicit: testrig.FreePort(t), ca: newTestCA(t)}
	cert, key := r.ca.files(t, "127.0.0.1")
	write(t, dir+"/cert.pem", string(cert))
	write(t, dir+"/key.pem", string(key))
	write(t, dir+"/exim.conf", fmt.Sprintf(`exim_user = root
exim_group = root
never_users =
spool_directory = %[1]s/spool
log_file_path = %[1]s/%%slog
pid_file_path = %[1]s/pid
primary_hostname = mail.exim.example
daemon_smtp_ports = %[2]d : %[3]d : %[4]d
local_interfaces = 127.0.0.1
tls_on_connect_ports = %[4]d
tls_certificate = %[1]s/cert.pem
tls_privatekey = %[1]s/key.pem
tls_advertise_hosts = *
auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}
message_size_limit = 20000
queue_only = true
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  defer condition = ${if eq{$local_part}{grey}}
        message = greylisted, try again in 10 minutes
  accept domains = peer.example
  deny message = relay not permitted
data:
  accept
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{%[5]s}}{eq{$auth3}{%[6]s}}}}
`, dir, r.clear, r.starttls, r.implicit, testUser, testPassword))
	if err := os.Mkdir(dir+"/spool", 0o750); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exim, "-bdf", "-C", dir+"/exim.conf")
	if _, err := os.Stat(dir + "/passwd"); err == nil {
		wrapper, err := filepath.Glob("/usr/lib/*/libnss_wrapper.so")
		if err != nil || len(wrapper) == 0 {
			testrig.Missing(t, "libnss_wrapper.so", "libnss_wrapper.so")
		}
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+wrapper[0], "NSS_WRAPPER_PASSWD="+dir+"/passwd", "NSS_WRAPPER_GROUP="+dir+"/group")
	}
	start(t, cmd, r.clear, r.starttls, r.implicit)
	r.mails = func() (all []string) {
		names, _ := filepath.Glob(dir + "/spool/input/*-D")
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
		return all
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		names, _ := filepath.Glob(dir + "/*log")
		for _, name := range names {
			b, _ := os.ReadFile(name)
			t.Logf("%s: %s", name, b[max(0, len(b)-3000):])
		}
	})
	return r
}
