package api_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
)

// crashFiles are what the writes below change: a project alone in its file, two in one, one behind a link.
var crashFiles = map[string]string{
	"acme.hcl": `# The shop.
project "acme" {
  name   = "Acme" # as on the door
  status = "ACTIVE"

  domain "shop.acme.example" { primary = true }
}
`,
	"two.hcl":         "project \"one\" {\n  name = \"One\"\n}\n\nproject \"two\" {\n  name = \"Two\"\n}\n",
	"..shared/li.hcl": "# Linked.\nproject \"linked\" {\n  name = \"Linked\"\n}\n",
	"large.hcl":       "project \"large\" {\n  name = \"Large\"\n  description = <<-EOT\n" + strings.Repeat("    some text\n", 150) + "  EOT\n}\n",
}

var crashLinks = map[string]string{"link.hcl": "..shared/li.hcl"}

// fewShots is one of how many states after a power cut are looked at outside of CI; of hundreds it is fewerShots. They
// share no divisor with the three states that each write of Pebble may leave, so that they meet all of them.
const fewShots, fewerShots = 13, 37

// crashStory has a write of every kind.
func crashStory(t testing.TB, r *crashRun) {
	one := func(name, method, path, body string, status int) {
		t.Helper()
		r.step(t, name, crashWrite{exchange: exchange{method: method, path: "/api/platform/projects" + path, body: body, status: status}})
	}
	one("a new project", "POST", "", `{"name":"New"}`, 201)
	one("another value", "PUT", "/@new", `{"status":"ACTIVE"}`, 200)
	one("a new domain", "POST", "/@acme/domains", `{"domain":"www.acme.example","primary":true}`, 201)
	one("another domain", "PUT", "/@acme/domains/@www.acme.example", `{"active":false}`, 200)
	one("a domain less", "DELETE", "/@acme/domains/@shop.acme.example", "", 200)
	one("service settings", "PUT", "/@acme/service-settings", `{"mailEnabled":true}`, 200)
	one("auth settings", "PUT", "/@new/auth-settings", `{"registrationMode":"INVITE_ONLY"}`, 200)
	one("another slug", "PUT", "/@new", `{"slug":"newer"}`, 200)
	one("one of two projects in a file", "DELETE", "/@one", "", 200)
	one("the other one", "DELETE", "/@two", "", 200)
	one("behind a link", "PUT", "/@linked", `{"name":"Still linked"}`, 200)
	one("the last block behind a link", "DELETE", "/@linked", "", 200)
	one("a large file", "PUT", "/@large", `{"name":"Larger"}`, 200)
	var many []crashWrite
	for i := range 6 {
		name := fmt.Sprintf("many-%d", i)
		many = append(many, crashWrite{name + ".hcl", exchange{method: "POST", path: "/api/platform/projects",
			body: fmt.Sprintf(`{"name":"Many","slug":%q}`, name), status: 201}})
	}
	r.step(t, "several at a time", many...)
	for i := range many {
		path := fmt.Sprintf("/api/platform/projects/@many-%d", i)
		switch i % 3 {
		case 0:
			many[i].exchange = exchange{method: "DELETE", path: path, status: 200}
		case 1:
			many[i].exchange = exchange{method: "PUT", path: path, body: `{"name":"Some"}`, status: 200}
		case 2:
			many[i].exchange = exchange{method: "POST", path: path + "/domains", body: fmt.Sprintf(`{"domain":"m%d.example"}`, i), status: 201}
		}
	}
	r.step(t, "several of all kinds at a time", many...)
}

// TestPowerLoss cuts the power at every step of every kind of write.
func TestPowerLoss(t *testing.T) {
	testrig.Thorough(t)
	every := testrig.Size(t, 1, fewerShots)
	t.Parallel()
	r := newCrashRun(t, crashFiles, crashLinks, &crashDisk{})
	r.every = every
	crashStory(t, r)
	r.report(t, r.finish())
	if len(r.seen) < 300 {
		t.Errorf("a crash may leave only %d states", len(r.seen))
	}
}

// TestPowerLossOfManyRemovals cuts the power at every step of removals that together exceed the limit on deletions.
func TestPowerLossOfManyRemovals(t *testing.T) {
	testrig.Thorough(t)
	every := testrig.Size(t, 1, fewerShots)
	t.Parallel()
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("p%d.hcl", i)] = fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n  domain \"p%d.example\" {}\n}\n", i, i)
	}
	r := newCrashRun(t, files, nil, &crashDisk{})
	r.every = every
	var removals, others []crashWrite
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		removals = append(removals, crashWrite{name + ".hcl", exchange{method: "DELETE", path: "/api/platform/projects/@" + name, status: 200}})
	}
	for i := 6; i < 11; i++ {
		path := fmt.Sprintf("/api/platform/projects/@p%d/domains/@p%d.example", i, i)
		others = append(others, crashWrite{fmt.Sprintf("p%d.hcl", i), exchange{method: "DELETE", path: path, status: 200}})
	}
	r.step(t, "removed domains", others...)
	r.step(t, "removed projects", removals...)
	r.report(t, r.finish())
}

// TestPowerLossBites omits the steps that writes rely on; each omission must be detected.
func TestPowerLossBites(t *testing.T) {
	testrig.Campaign(t) // a test of the other tests
	for name, c := range map[string]struct {
		disk *crashDisk
		says string
	}{
		"sync of the file":   {&crashDisk{noFileSync: true}, "state problems"},
		"sync of the folder": {&crashDisk{noFolderSync: true}, "the answered write to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCrashRun(t, crashFiles, nil, c.disk)
			r.step(t, "a write", crashWrite{exchange: exchange{method: "PUT", path: "/api/platform/projects/@acme", body: `{"name":"X"}`, status: 200}})
			wrong := strings.Join(r.finish(), "\n")
			if !strings.Contains(wrong, c.says) {
				t.Errorf("without it nobody finds that %q; all that was wrong: %s", c.says, wrong)
			}
		})
	}
}

// TestPowerLossInStories cuts the power during the writes of the other stories: in CI of all, elsewhere of some.
func TestPowerLossInStories(t *testing.T) {
	names, err := filepath.Glob("testdata/writeback/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no stories: ", err)
	}
	t.Setenv("FINGERPOST_STORY_PASSWORD", "from the environment")
	every := testrig.Size(t, 1, fewShots)
	for i, name := range names {
		if i%testrig.Size(t, 1, 120) != 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			story, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range story.Files {
				when, path, _ := strings.Cut(f.Name, "/projects.d/")
				if when == "saved" {
					t.Skip("a person saves in it")
				}
				if when == "before" {
					files[path] = unsign(string(f.Data))
				}
			}
			r := newCrashRun(t, files, nil, &crashDisk{})
			r.every = every
			if r.source.Status().State != configsrc.StateOK {
				t.Skip("it has a broken file from the start")
			}
			for n, e := range exchanges(t, string(story.Comment)) {
				r.step(t, fmt.Sprintf("write %d", n), crashWrite{exchange: e})
			}
			r.report(t, r.finish())
		})
	}
}

// byHand returns a person's save: it contains a second project, so that it never equals the first.
func byHand(n int) string {
	return fmt.Sprintf("# by hand %d\nproject \"acme\" {\n  name = \"By hand %d\"\n}\n\nproject \"extra\" {\n  name = \"Extra\"\n}\n", n, n)
}

// savedRun plays a write while a person saves the file just before some of its steps, counted from 0. It returns which
// saves were lost in which state after a power cut, and how many steps the write had. It looks at one of so many
// states.
func savedRun(t *testing.T, disk *crashDisk, every int, w exchange, saves ...int) (
	r *crashRun, lost []string, steps int,
) {
	t.Helper()
	r = newCrashRun(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"}, nil, disk)
	r.every = every
	saved := 0
	disk.before = func(string) {
		if slices.Contains(saves, steps) {
			saved++
			err := disk.save("acme.hcl", byHand(saved), func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.saved = fmt.Sprintf("# by hand %d\n", saved)
			})
			if err != nil {
				t.Error(err)
			}
		}
		steps++
	}
	r.step(t, "a write", crashWrite{exchange: w})
	r.checks.Wait()
	for _, s := range r.shots {
		switch {
		case s.wrong != "":
			lost = append(lost, fmt.Sprintf("saves before %v, power lost after %s: %s", saves, s.at, s.wrong))
		case !strings.Contains(show(s.got), s.saved):
			lost = append(lost, fmt.Sprintf("saves before %v, power lost after %s: it is lost\n--- left\n%s\n--- after the restart\n%s",
				saves, s.at, show(s.left), show(s.got)))
		}
	}
	return r, lost, steps
}

var personWrites = map[string]exchange{
	"a change":  {method: "PUT", path: "/api/platform/projects/@acme", body: `{"status":"ACTIVE"}`},
	"a removal": {method: "DELETE", path: "/api/platform/projects/@acme"},
}

// TestPowerLossDuringSaves lets a person save before each step of a write, once or twice, and cuts the power at each
// step.
func TestPowerLossDuringSaves(t *testing.T) {
	testrig.Thorough(t)
	every, shots := testrig.Size(t, 1, 7), testrig.Size(t, 1, fewShots)
	for name, w := range personWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, lost, steps := savedRun(t, &crashDisk{}, shots, w)
			states := 0
			for first := 0; first < steps; first += every {
				for _, second := range []int{-1, first + 1, first + 2} {
					r, more, _ := savedRun(t, &crashDisk{}, shots, w, first, second)
					lost = append(lost, more...)
					states += len(r.shots)
				}
			}
			testrig.Figure(t, "%d steps, %d states after a power cut", steps, states)
			if len(lost) > 0 {
				t.Errorf("%s\nand %d more", lost[0], len(lost)-1)
			}
			if steps < 5 {
				t.Errorf("the write has %d steps only", steps)
			}
		})
	}
}

// TestExchangeBites: if nobody looks at what a write has replaced, a save is lost.
func TestExchangeBites(t *testing.T) {
	testrig.Campaign(t) // a test of the other tests
	for name, w := range personWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, steps := savedRun(t, &crashDisk{}, 1, w)
			for at := range steps {
				if _, lost, _ := savedRun(t, &crashDisk{plainRename: true}, 1, w, at); len(lost) > 0 {
					return
				}
			}
			t.Error("nothing is lost: the other tests prove nothing")
		})
	}
}
