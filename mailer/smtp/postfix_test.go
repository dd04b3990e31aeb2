package smtp_test

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
)

// sharedDir returns a folder of the test that other users can read.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a program to its end.
func run(t testing.TB, stdin, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// start runs a program until the test ends, and waits for its ports to answer.
func start(t testing.TB, cmd *exec.Cmd, ports ...int) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Process.Signal(syscall.SIGTERM) // smtp-sink ignores an interrupt if the tests run in the background of a shell
		select {
		case <-done:
		case <-time.After(testrig.Patience):
			_ = cmd.Process.Kill()
			<-done
		}
	})
	for _, port := range ports {
		testrig.Eventually(t, fmt.Sprintf("%s listens on %d", cmd.Path, port), func() bool {
			select {
			case <-done:
				t.Fatalf("%s has ended: %s", cmd.Path, out.String())
			default:
			}
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				return false
			}
			_ = c.Close()
			return true
		})
	}
}

// A realServer is a mail server of a distribution. Its ports require a login, except clear.
type realServer struct {
	clear, starttls, implicit int
	only                      map[string]int // STARTTLS with one way to log in
	ca                        *testCA
	mails                     func() []string // those taken, as they are stored
}

func (r realServer) at(port int) smtp.Server {
	return smtp.Server{Host: "127.0.0.1", Port: port, CA: r.ca.pem, SSL: port == r.implicit, TLS: port != r.implicit && port != r.clear}
}

// postfixServices returns a master.cf with the listeners, and writes the login configuration of each.
func (r realServer) postfixServices(t testing.TB, dir string) string {
	t.Helper()
	master, err := os.ReadFile("/etc/postfix/master.cf")
	if err != nil {
		master, err = os.ReadFile("/usr/share/postfix/master.cf.dist")
	}
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	for line := range strings.Lines(string(master)) { // all but what listens on the network, or runs other programs
		if f := strings.Fields(line); len(f) == 8 && !strings.ContainsAny(line[:1], "# \t") && f[1] != "inet" && f[7] != "pipe" {
			f[4] = "n" // chroot
			s.WriteString(strings.Join(f, " ") + "\n")
		}
	}
	s.WriteString("postlog unix-dgram n - n - 1 postlogd\n")
	listen := func(port int, options string) {
		fmt.Fprintf(&s, "127.0.0.1:%d inet n - n - - smtpd %s\n", port, options)
	}
	sasl := func(name, mechanisms string) string {
		write(t, dir+"/sasl/"+name+".conf",
			fmt.Sprintf("pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: %s\nsasldb_path: %s/sasldb2\n", mechanisms, dir))
		return " -o smtpd_sasl_auth_enable=yes -o smtpd_client_restrictions=permit_sasl_authenticated,reject -o smtpd_sasl_path=" + name
	}
	listen(r.clear, "")
	listen(r.starttls, "-o smtpd_tls_security_level=encrypt"+sasl("smtpd", "PLAIN LOGIN"))
	listen(r.implicit, "-o smtpd_tls_wrappermode=yes"+sasl("smtpd", "PLAIN LOGIN"))
	for mechanism, port := range r.only {
		listen(port, "-o smtpd_tls_security_level=encrypt"+sasl("only-"+strings.ToLower(mechanism), mechanism))
	}
	return s.String()
}

// newPostfix starts Debian's Postfix with its own configuration, queue and accounts. It takes mail for peer.example.
func newPostfix(t testing.TB) realServer {
	t.Helper()
	testrig.NeedRoot(t)
	tools := testrig.Need(t, "postconf", "postfix", "saslpasswd2")
	daemons, err := exec.Command(tools[0], "-d", "-h", "daemon_directory").Output()
	if err != nil {
		t.Fatal(err)
	}
	owner, err := user.Lookup("postfix")
	if err != nil {
		t.Fatal(err)
	}
	dir := sharedDir(t)
	r := realServer{clear: testrig.FreePort(t), starttls: testrig.FreePort(t), implicit: testrig.FreePort(t), ca: newTestCA(t),
		only: map[string]int{"PLAIN": testrig.FreePort(t), "LOGIN": testrig.FreePort(t), "CRAM-MD5": testrig.FreePort(t)}}
	cert, key := r.ca.files(t, "127.0.0.1")
	write(t, dir+"/cert.pem", string(key)+string(cert))
	write(t, dir+"/main.cf", fmt.Sprintf(`compatibility_level = 3.6
queue_directory = %[1]s/spool
data_directory = %[1]s/lib
maillog_file = %[1]s/mail.log
maillog_file_prefixes = %[1]s
myhostname = mail.postfix.example
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
virtual_mailbox_domains = peer.example
virtual_mailbox_maps = inline:{ {ann@peer.example = ann/} {grey@peer.example = grey/} }
virtual_mailbox_base = %[1]s/mail
virtual_minimum_uid = 1
virtual_uid_maps = static:%[2]s
virtual_gid_maps = static:%[3]s
message_size_limit = 20000
notify_classes =
default_transport = discard:
smtpd_tls_chain_files = %[1]s/cert.pem
smtpd_sasl_type = cyrus
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_recipient_restrictions = check_recipient_access inline:{ {grey@peer.example = 450 4.2.0 Greylisted, try again in 300 seconds} }
smtpd_sender_restrictions = check_sender_access inline:{ {forged@acme.example = 553 5.7.1 not yours} }
`, dir, owner.Uid, owner.Gid))
	write(t, dir+"/master.cf", r.postfixServices(t, dir))
	for _, d := range []string{"/lib", "/mail", "/spool"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, testPassword, tools[2], "-p", "-c", "-f", dir+"/sasldb2", "-u", "acme.example", "hello")
	run(t, "", "chown", "postfix", dir+"/lib", dir+"/mail", dir+"/sasldb2")
	run(t, "", tools[1], "-c", dir, "check")
	start(t, exec.Command(strings.TrimSpace(string(daemons))+"/master", "-c", dir, "-d"),
		append([]int{r.clear, r.starttls, r.implicit}, slices.Collect(maps.Values(r.only))...)...)
	r.mails = func() (all []string) {
		names, _ := filepath.Glob(dir + "/mail/ann/new/*")
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
		if b, _ := os.ReadFile(dir + "/mail.log"); t.Failed() {
			t.Logf("%s", b[max(0, len(b)-4000):])
		}
	})
	return r
}
