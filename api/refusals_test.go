package api_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// redacted checks a refusal against api/README.md, Errors: it shows no path of the machine and none of the secrets.
func (d *desk) redacted(t testing.TB, a *answer, secrets ...string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(secrets, d.dir, root, os.TempDir()) {
		if strings.Contains(string(a.body), secret) {
			t.Errorf("the answer tells %q: %s", secret, a.body)
		}
	}
}

func (a *answer) message() string {
	e, _ := a.json["error"].(map[string]any)
	message, _ := e["message"].(string)
	return message
}

const sharedFile = `# one file for two tenants
project "acme" {
  name = "Acme"

  domain "shop.acme.example" {}

  smtp_config {
    host        = "smtp.acme.example"
    username    = "acme"
    password    = env("ACME_PASSWORD")
    from_email  = "a@acme.example"
    tls_enabled = true
  }
}

project "rival" {
  name = "The Rival"

  domain "rival.example" {}
}
`

// acmeKey declares a key for the project "acme" alone.
func acmeKey(files map[string]string) (key string) {
	key, id := catalog.NewKeyText()
	files["keys.hcl"] = fmt.Sprintf("key \"acme\" {\n  id       = %q\n  hash     = %q\n  allow    = [\"read\", \"write\", \"mail\"]\n  projects = [\"acme\"]\n}\n",
		id, catalog.HashKeyText(key))
	return key
}

// TestRefusalsOfTakenNames: two claims are a CONFLICT with details, in two files and in one. A key for every project
// gets the file, below the config folder, and the line; a key for one project only that the name is taken.
func TestRefusalsOfTakenNames(t *testing.T) {
	files := map[string]string{"tenants/all.hcl": sharedFile, "tenants/third.hcl": "project \"third\" {\n  name = \"Third\"\n\n  domain \"third.example\" {}\n}\n"}
	acme := acmeKey(files)
	d := newDesk(t, files)
	json := "Content-Type: application/json"
	domains := d.path(t, "/api/platform/projects/@acme/domains")
	shop := d.path(t, "/api/platform/projects/@acme/domains/@shop.acme.example")
	for name, place := range map[string]string{"rival.example": "tenants/all.hcl:19", "third.example": "tenants/third.hcl:4"} {
		body := fmt.Sprintf(`{"domain":%q}`, name)
		for _, key := range []string{d.key, acme} {
			for _, a := range []*answer{d.askBody("POST", domains, key, body, json), d.askBody("PUT", shop, key, body, json)} {
				a.check(t, http.StatusConflict, "CONFLICT")
				if got := strings.Join(a.fields(), ","); got != "domain" {
					t.Errorf("details name %q, want domain: %s", got, a.body)
				}
				d.redacted(t, a)
				if key == acme {
					d.redacted(t, a, "hcl", "rival\"", "third\"", "Rival", "Third")
				} else if !strings.Contains(a.message(), " "+place+" ") {
					t.Errorf("the message does not name %s: %s", place, a.body)
				}
			}
		}
	}
	a := d.askBody("PUT", d.path(t, "/api/platform/projects/@acme"), d.key, `{"slug":"rival"}`, json)
	a.check(t, http.StatusConflict, "CONFLICT")
	if got := strings.Join(a.fields(), ","); got != "slug" {
		t.Errorf("details name %q, want slug: %s", got, a.body)
	}
	if got := d.files(t)["tenants/all.hcl"]; got != sharedFile {
		t.Errorf("the file has changed:\n%s", got)
	}
}

// TestRefusalsOfBrokenFiles: the answer names the file, below the config folder, and the line. Only a key for every
// project gets the problem itself: the line may be another tenant's.
func TestRefusalsOfBrokenFiles(t *testing.T) {
	files := map[string]string{"tenants/all.hcl": sharedFile}
	acme := acmeKey(files)
	d := newDesk(t, files)
	json := "Content-Type: application/json"
	put := func(key, path, body string) *answer {
		t.Helper()
		return d.askBody("PUT", d.path(t, path), key, body, json)
	}
	describe := func(key string) *answer {
		t.Helper()
		return put(key, "/api/platform/projects/@acme", `{"description":"new"}`)
	}

	// Expressions stay.
	a := d.askBody("PUT", d.path(t, "/api/mail/projects/@acme/smtp-config"), "", `{"password":"another"}`, json,
		"X-Internal-Service-Token: "+acme, "X-Internal-Service-Name: test")
	a.check(t, http.StatusConflict, "FIELD_IS_EXPRESSION")
	if d.redacted(t, a); !strings.HasPrefix(a.message(), "tenants/all.hcl:10:") {
		t.Errorf("the message does not begin with file and line: %s", a.body)
	}

	// A person breaks a line of the other tenant. There is no wait for the reload: the write reads the file itself.
	broken := strings.Replace(sharedFile, `"The Rival"`, `"The Rival"`+"\n  secret_plan = \"takeover\"", 1)
	d.save(t, map[string]string{"tenants/all.hcl": broken})
	a = describe(d.key)
	a.check(t, http.StatusConflict, "CONFIG_FILE_INVALID")
	if d.redacted(t, a); !strings.Contains(a.message(), "tenants/all.hcl:18:3: ") || !strings.Contains(a.message(), "secret_plan") {
		t.Errorf("the message does not say where and what: %s", a.body)
	}
	a = describe(acme)
	a.check(t, http.StatusConflict, "CONFIG_FILE_INVALID")
	if d.redacted(t, a, "rival", "Rival", "secret_plan", "takeover"); !strings.Contains(a.message(), "tenants/all.hcl:18:3") {
		t.Errorf("the message does not say where: %s", a.body)
	}

	// Two objects of one name, of which the message names both places.
	d.save(t, map[string]string{"tenants/all.hcl": sharedFile + "\nproject \"rival\" {\n  name = \"Twice\"\n}\n"})
	for _, key := range []string{d.key, acme} {
		a = describe(key)
		a.check(t, http.StatusConflict, "CONFIG_FILE_INVALID")
		d.redacted(t, a)
	}
	d.redacted(t, a, "rival", "Rival", "Twice")

	// A file that is not the project's any more.
	d.save(t, map[string]string{"tenants/all.hcl": strings.Replace(sharedFile, `project "acme" {`, "project \"acme\" {\n  uuid = \"0d8d9b0c-5f2b-4c6e-9d8f-3b1f6f0a2c11\"", 1)})
	a = describe(acme)
	if d.redacted(t, a, "Rival"); a.StatusCode/100 == 2 || a.message() == "" {
		t.Errorf("got %d: %s", a.StatusCode, a.body)
	}
}

// A brokenDisk refuses one kind of call with an error that has absolute paths, as those of package os do.
type brokenDisk struct {
	atomicfile.OSDisk
	call atomic.Pointer[string]
	with atomic.Pointer[error]
}

func (d *brokenDisk) refuses(call, op, name string) error {
	if want := d.call.Load(); want == nil || *want != call {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: *d.with.Load()}
}

func (d *brokenDisk) link(call, from, to string) error {
	if err := d.refuses(call, "", ""); err != nil {
		return &os.LinkError{Op: call, Old: from, New: to, Err: *d.with.Load()}
	}
	return nil
}

func (d *brokenDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	if err := d.refuses("create", "open", dir); err != nil {
		return nil, err
	}
	return d.OSDisk.CreateTemp(dir, pattern, perm)
}

func (d *brokenDisk) Stat(name string) (fs.FileInfo, error) {
	if err := d.refuses("stat", "stat", name); err != nil {
		return nil, err
	}
	return d.OSDisk.Stat(name)
}

func (d *brokenDisk) ReadFile(name string) ([]byte, error) {
	if err := d.refuses("read", "open", name); err != nil {
		return nil, err
	}
	return d.OSDisk.ReadFile(name)
}

func (d *brokenDisk) Rename(from, to string) error {
	if err := d.link("rename", from, to); err != nil {
		return err
	}
	return d.OSDisk.Rename(from, to)
}

func (d *brokenDisk) Exchange(a, b string) error {
	if err := d.link("exchange", a, b); err != nil {
		return err
	}
	return d.OSDisk.Exchange(a, b)
}

func (d *brokenDisk) Link(from, to string) error {
	if err := d.link("link", from, to); err != nil {
		return err
	}
	return d.OSDisk.Link(from, to)
}

func (d *brokenDisk) SyncFolder(dir string) error {
	if err := d.refuses("sync", "sync", dir); err != nil {
		return err
	}
	return d.OSDisk.SyncFolder(dir)
}

// TestRefusalsOfTheDisk: whatever call fails, in whatever way, no answer shows where the config folder is.
func TestRefusalsOfTheDisk(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	disk := new(brokenDisk)
	d := &desk{dir: t.TempDir(), disk: disk}
	d.open(t, map[string]string{
		"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n\n  template \"A\" {\n    name             = \"A\"\n    subject_template = \"a\"\n    body_text        = file(\"a.txt\")\n  }\n}\n",
		"a.txt":    "text\n",
	})
	json := "Content-Type: application/json"
	path := d.path(t, "/api/platform/projects/@acme")
	asks := []func(i int) *answer{
		func(i int) *answer {
			return d.askBody("PUT", path, d.key, fmt.Sprintf(`{"description":"%d"}`, i), json)
		},
		func(i int) *answer {
			return d.askBody("POST", "/api/platform/projects", d.key, fmt.Sprintf(`{"name":"New","slug":"new-%d"}`, i), json)
		},
		func(i int) *answer {
			return d.askBody("POST", path+"/domains", d.key, fmt.Sprintf(`{"domain":"n%d.example"}`, i), json)
		},
		func(i int) *answer { return d.ask("DELETE", path, d.key) },
	}
	n, refused := 0, 0
	for i, call := range []string{"create", "stat", "read", "rename", "exchange", "link", "sync"} {
		for j, failure := range []error{syscall.EACCES, syscall.EROFS, syscall.ENOSPC, syscall.EIO, syscall.EMFILE, syscall.ENOENT, syscall.ELOOP, syscall.EINVAL} {
			for which, ask := range asks {
				if which == len(asks)-1 && call != "rename" && call != "create" {
					continue // it must not succeed
				}
				if (i+j+which)%3 != 0 && !testrig.IsThorough() {
					continue // each call fails in each way in at least one write
				}
				n++
				disk.with.Store(&failure)
				disk.call.Store(&call)
				a := ask(n)
				disk.call.Store(nil)
				if a.StatusCode >= 400 {
					refused++
				}
				d.redacted(t, a)
			}
		}
	}
	if refused < n/3 {
		t.Errorf("only %d of %d writes were refused", refused, n)
	}
	t.Logf("%d of %d writes were refused", refused, n)
}

// While the config folder is away, as during a checkout, writes are to be tried again, and nothing is lost.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	path := d.path(t, "/api/platform/projects/@acme")
	away := d.dir + ".away"
	if err := os.Rename(d.dir, away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(away) })
	for _, ask := range []func() *answer{
		func() *answer { return d.askBody("PUT", path, d.key, `{"name":"New"}`) },
		func() *answer { return d.askBody("POST", "/api/platform/projects", d.key, `{"name":"Other"}`) },
		func() *answer {
			return d.askBody("POST", path+"/domains", d.key, `{"domain":"new.example"}`)
		},
		func() *answer { return d.askBody("PUT", path+"?dryRun=1", d.key, `{"name":"New"}`) },
		func() *answer {
			return d.askBody("POST", "/api/platform/keys", d.key, `{"name":"k","allow":["read"]}`)
		},
		func() *answer { return d.ask("DELETE", path, d.key) },
	} {
		a := ask()
		a.check(t, 503, "UNAVAILABLE")
		if a.Header.Get("Retry-After") == "" || strings.Contains(string(a.body), filepath.Dir(d.dir)) {
			t.Errorf("%v %s", a.Header, a.body)
		}
	}
	if err := os.Rename(away, d.dir); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "a write goes well again", func() bool {
		return d.askBody("PUT", path, d.key, `{"name":"New"}`).StatusCode == 200
	})
}
