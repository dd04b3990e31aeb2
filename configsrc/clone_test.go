package configsrc_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const stolen = "AGE-SECRET-KEY-1"

// A cloneRig is a config folder two levels below the top of a clone, and a folder elsewhere on the machine.
type cloneRig struct {
	t                 *testing.T
	top, dir, outside string
	resolver          *resolver.Resolver
	source            *configsrc.Source
	secrets           *seal.Secrets
}

func newCloneRig(t *testing.T, fanout bool) *cloneRig {
	t.Helper()
	at := t.TempDir()
	c := &cloneRig{t: t, top: filepath.Join(at, "clone"), dir: filepath.Join(at, "clone/in/conf"), outside: filepath.Join(at, "outside")}
	must(t, os.MkdirAll(filepath.Join(c.top, ".git"), 0o777))
	config := `project "acme" {
  name = "Acme"
  template "A" {
    name             = "A"
    subject_template = "s"
    body_html        = file("seal.key")
    body_text        = "text"
  }
}
`
	// Where the link leads to looks like a config folder.
	for _, dir := range []string{c.dir, filepath.Join(c.outside, "conf"), c.outside} {
		write(t, filepath.Join(dir, "acme.hcl"), config)
		write(t, filepath.Join(dir, "other.hcl"), project("other"))
		write(t, filepath.Join(dir, "seal.key"), stolen)
		write(t, filepath.Join(dir, "ne/keep"), "")
		write(t, filepath.Join(dir, ".fingerpost-1.tmp"), "of a write")
	}
	write(t, filepath.Join(c.dir, "seal.key"), "<p>mail\n")
	must(t, os.Remove(filepath.Join(c.dir, ".fingerpost-1.tmp")))
	clone, err := folder.FindClone(c.dir)
	must(t, err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	c.resolver, err = resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	must(t, err)
	c.source = configsrc.New(configsrc.Options{Dir: c.dir, StatEvery: 50 * time.Millisecond, Clone: clone, Sink: c.resolver, Logger: log, MaxDelete: 1, Fanout: fanout})
	c.secrets = &seal.Secrets{Dir: c.dir, Clone: clone}
	ctx, cancel := context.WithCancel(context.Background())
	must(t, c.source.Load(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.source.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		c.resolver.Close()
	})
	return c
}

// calls are what reads or writes files of the config folder.
var calls = map[string]func(c *cloneRig) error{
	"reload": func(c *cloneRig) error {
		if err := c.source.Reload(c.t.Context()); err != nil {
			return err
		}
		if st := c.source.Status(); st.Held != nil || st.Errors > 0 || st.State != configsrc.StateOK {
			return errors.New("not loaded")
		}
		return nil
	},
	"secret": func(c *cloneRig) error {
		got, err := c.secrets.Open(catalog.Secret{Source: catalog.SecretFile, Ref: "seal.key"}, "")
		if got == stolen {
			c.t.Error("the secret is that of the machine")
		}
		return err
	},
	"update": func(c *cloneRig) error {
		return updateProject(c.t.Context(), c.source, catalog.DeriveProjectUUID("other"), func(p *catalog.ProjectConfig) error {
			p.Project.Name += "x"
			return nil
		})
	},
	"update of a body": func(c *cloneRig) error {
		return updateProject(c.t.Context(), c.source, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
			p.Templates[0].BodyHTML = "<p>new\n"
			return nil
		})
	},
	"delete": func(c *cloneRig) error {
		return deleteProject(c.t.Context(), c.source, catalog.DeriveProjectUUID("other"), func(*catalog.ProjectConfig) error { return nil })
	},
	"create": func(c *cloneRig) error {
		p := &catalog.Project{Name: "New", Slug: "new", Status: catalog.StatusDraft, UUID: catalog.NewUUID()}
		return createProject(c.t.Context(), c.source, p)
	},
	"create a key": func(c *cloneRig) error {
		return createKey(c.t.Context(), c.source, newKey("ci"), allowed)
	},
}

// intact fails if anything outside has changed, or anything from there is served.
func (c *cloneRig) intact(before map[string]string) {
	c.t.Helper()
	if after := filesIn(c.t, c.outside); !reflect.DeepEqual(after, before) {
		c.t.Errorf("outside the clone there is now\n%v", after)
	}
	p, err := c.resolver.ProjectBySlug("acme")
	if err != nil {
		c.t.Error(err)
		return
	}
	if a, err := c.resolver.MailTemplate(p.ID, "A"); err != nil || strings.Contains(a.BodyHTML, stolen) {
		c.t.Errorf("the template is %+v, %v", a, err)
	}
}

// A link in the place of the config folder, of one above it, or of one below it is never followed: nothing outside is
// read, changed or removed. Once the folder is back, everything works again.
func TestCloneFollowsNoLink(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	for _, replaced := range []string{"in/conf", "in", "in/conf/ne"} {
		for name, f := range calls {
			for _, fanout := range []bool{false, true} {
				if fanout && name != "create" || replaced == "in/conf/ne" && !fanout {
					continue
				}
				t.Run(strings.ReplaceAll(replaced, "/", "-")+" "+name, func(t *testing.T) {
					t.Parallel()
					c := newCloneRig(t, fanout)
					before := filesIn(t, c.outside)
					at := filepath.Join(c.top, replaced)
					must(t, os.Rename(at, at+".away"))
					must(t, os.Symlink(c.outside, at))
					if err := f(c); err == nil {
						t.Error("it has succeeded")
					}
					c.intact(before)
					must(t, os.Remove(at))
					must(t, os.Rename(at+".away", at))
					testrig.Eventually(t, "it works again", func() bool { return f(c) == nil })
				})
			}
		}
	}
}

// A clone whose config folder is a link already is refused, and one that a link from elsewhere leads to is not.
func TestFindClone(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(at, "clone/.git"), 0o777))
	must(t, os.MkdirAll(filepath.Join(at, "clone/conf"), 0o777))
	must(t, os.Symlink("conf", filepath.Join(at, "clone/link")))
	must(t, os.Symlink("clone", filepath.Join(at, "current")))
	must(t, os.Symlink("clone/conf", filepath.Join(at, "config")))
	f := func(dir string, ok bool) {
		t.Helper()
		if _, err := folder.FindClone(filepath.Join(at, dir)); (err == nil) != ok {
			t.Errorf("%s: %v", dir, err)
		}
	}
	f("clone", true)
	f("clone/conf", true)
	f("current/conf", true)
	f("config", true)
	f("clone/link", false)
	f("current/link", false)
	f("clone/none", false)
	if _, err := folder.FindClone(filepath.Join(at, "clone/none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
