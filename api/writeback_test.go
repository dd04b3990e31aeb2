package api_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// The stories in testdata/writeback show what a write does to the files: those before, the requests, those after. A
// story without any after shows that nothing changes. Adding a case is adding a file.
//
// In a story @acme is replaced by the project's id, and @shop.acme.example after it by the domain's. Signs stand for
// bytes that a text file cannot show: ␍ (a CR before the line feed), ␄ (no final line feed), ␉ (a tab), ␂ (a byte order
// mark). {{uuid}} stands for any UUID, {{recipient}} for the recipient of sealed values, and {{sealed:x}} for a sealed
// value that opens as x; {{keyid}}, {{hash}} and {{time}} stand for those of a key that the service wrote. A template's
// id is @CODE after templates/. Files that a person saves after the service has loaded are under saved/.
func TestWriteBack(t *testing.T) {
	names, err := filepath.Glob("testdata/writeback/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no stories: ", err)
	}
	t.Setenv("FINGERPOST_STORY_PASSWORD", "from the environment")
	for i, name := range names {
		if i%4 != 0 && !testrig.IsThorough() || testing.Short() && i%16 != 0 {
			continue // names sort by kind: some of each are left
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			story, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tell(t, story, i%testrig.Size(t, 1, 5) == 0)
		})
	}
}

// An exchange is one request of a story, with what it has to come to.
type exchange struct {
	method, path string
	header       http.Header
	body         string
	status       int
	code         string
}

// exchanges reads the requests out of a story's head.
func exchanges(t testing.TB, head string) (list []exchange) {
	t.Helper()
	var e exchange
	reset := func() { e = exchange{header: http.Header{}} }
	reset()
	for line := range strings.Lines(head) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case e.method == "" && (line == "" || strings.HasPrefix(line, "#")):
		case e.method == "":
			e.method, e.path, _ = strings.Cut(line, " ")
		case strings.HasPrefix(line, "=> "):
			status, code, _ := strings.Cut(strings.TrimPrefix(line, "=> "), " ")
			e.status, _ = strconv.Atoi(status)
			e.code = code
			list = append(list, e)
			reset()
		case e.body == "" && headerLine.MatchString(line):
			name, value, _ := strings.Cut(line, ": ")
			e.header.Add(name, value)
		default:
			e.body += line + "\n"
		}
	}
	if len(list) == 0 || e.method != "" {
		t.Fatal("the story has no request, or one without \"=> status\"")
	}
	return list
}

var headerLine = regexp.MustCompile(`^[A-Z][A-Za-z-]*: `)

// tell plays a story. With compare the state at its end is that of a new service on the same files.
func tell(t *testing.T, story *txtar.Archive, compare bool) {
	sections := map[string]map[string]string{}
	for _, f := range story.Files {
		when, path, _ := strings.Cut(f.Name, "/projects.d/")
		if sections[when] == nil {
			sections[when] = map[string]string{}
		}
		sections[when][path] = unsign(string(f.Data))
	}
	d := newDesk(t, sections["before"])
	d.save(t, sections["saved"])
	for _, e := range exchanges(t, string(story.Comment)) {
		d.exchange(t, e)
	}
	want := sections["after"]
	if want == nil {
		want = maps.Clone(sections["before"])
		maps.Copy(want, sections["saved"])
	}
	d.compare(t, want)
	if sections["saved"] == nil && compare {
		d.compareFresh(t)
	}
}

func unsign(s string) string {
	s = strings.NewReplacer("␍", "\r", "␉", "\t", "␂", "\ufeff").Replace(s)
	return strings.TrimSuffix(s, "␄\n")
}

// exchange makes a request and checks the answer's code, and its status unless that is 0. As its users do, it tries
// again where the server is busy and has done nothing: a write waits for its turn for a limited time, and machines are
// slow.
func (d *desk) exchange(t testing.TB, e exchange) {
	t.Helper()
	for end := time.Now().Add(testrig.Patience); ; {
		status, body := d.once(t, e)
		if status == http.StatusServiceUnavailable && e.status != status && bytes.Contains(body, []byte("try again in a moment")) &&
			time.Now().Before(end) {
			continue
		}
		if e.status != 0 && status != e.status || e.code != "" && !bytes.Contains(body, []byte(`"code":"`+e.code+`"`)) {
			t.Fatalf("%s %s: status %d, want %d %s: %s", e.method, e.path, status, e.status, e.code, body)
		}
		return
	}
}

func (d *desk) once(t testing.TB, e exchange) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequest(e.method, "http://"+d.addr+d.path(t, e.path), strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = e.header
	if strings.HasPrefix(e.path, "/api/mail/") {
		req.Header.Set("X-Internal-Service-Token", d.key)
		req.Header.Set("X-Internal-Service-Name", "story")
	} else {
		req.Header.Set("X-PLATFORM-KEY", d.key)
	}
	res, err := conforming(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// path replaces names by ids.
func (d *desk) path(t testing.TB, path string) string {
	t.Helper()
	var project int64
	parts := strings.Split(path, "/")
	for i, part := range parts {
		name, named := strings.CutPrefix(part, "@")
		if !named {
			continue
		}
		if project == 0 {
			p, err := d.resolver.ProjectBySlug(name)
			if err != nil {
				t.Fatalf("%s: %v", part, err)
			}
			project = p.ID
			parts[i] = strconv.FormatInt(p.ID, 10)
			continue
		}
		if parts[i-1] == "templates" {
			parts[i] = strconv.FormatInt(d.templateID(t, project, name), 10)
			continue
		}
		parts[i] = strconv.FormatInt(d.domainID(t, name), 10)
	}
	return strings.Join(parts, "/")
}

// domainID finds a domain in whatever project it is.
func (d *desk) domainID(t testing.TB, name string) (id int64) {
	t.Helper()
	err := d.resolver.EachProject(func(p *catalog.Project) bool {
		domains, _, err := d.resolver.Domains(p.ID, resolver.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range domains {
			if x.Name == name {
				id = x.ID
			}
		}
		return id == 0
	})
	if err != nil || id == 0 {
		t.Fatalf("no domain %s: %v", name, err)
	}
	return id
}

// templateID finds a template that a project can send, its own before a default one.
func (d *desk) templateID(t testing.TB, project int64, code string) (id int64) {
	t.Helper()
	rows, _, err := d.resolver.Templates(project, resolver.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Code == code && (id == 0 || row.ProjectID != 0) {
			id = row.ID
		}
	}
	if id == 0 {
		t.Fatalf("no template %s", code)
	}
	return id
}

const anyUUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

// signs replaces the placeholders, quoted, by patterns.
var signs = strings.NewReplacer(`\{\{uuid\}\}`, anyUUID, `\{\{keyid\}\}`, "[a-z0-9]{8}", `\{\{hash\}\}`, "sha256:[0-9a-f]{64}",
	`\{\{time\}\}`, `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}`)

// compare compares the folder with what a story expects.
func (d *desk) compare(t testing.TB, want map[string]string) {
	t.Helper()
	got := d.files(t)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		content, there := got[path]
		pattern := "^" + signs.Replace(regexp.QuoteMeta(d.unsealed(t, want[path], content))) + "$"
		if !there {
			t.Errorf("%s is gone", path)
		} else if !regexp.MustCompile(pattern).MatchString(content) {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", path, content, want[path])
		}
		delete(got, path)
	}
	for path, content := range got {
		t.Errorf("%s is there, with\n%s", path, content)
	}
}

var (
	sealedSign = regexp.MustCompile(`\{\{sealed:([^}]*)\}\}`)
	sealedText = regexp.MustCompile(`sealed\("([A-Za-z0-9+/=]+)"\)`)
)

// unsealed replaces a file's sealed values by their placeholders, if they open as the story says, and the recipient by
// its placeholder.
func (d *desk) unsealed(t testing.TB, want, got string) string {
	t.Helper()
	recipients, err := seal.Recipients(d.seal)
	if err != nil {
		t.Fatal(err)
	}
	want = strings.ReplaceAll(want, "{{recipient}}", recipients[0])
	found := sealedText.FindAllStringSubmatch(got, -1)
	return sealedSign.ReplaceAllStringFunc(want, func(sign string) string {
		plain := sealedSign.FindStringSubmatch(sign)[1]
		for _, f := range found {
			opens := func(context string) {
				text, err := d.secrets(t).Open(catalog.Secret{Source: catalog.SecretSealed, Ref: f[1]}, context)
				if err == nil && text == plain {
					sign = f[1]
				}
			}
			for _, w := range d.resolver.Webhooks() {
				opens(w.SecretContext())
			}
			err := d.resolver.EachProject(func(p *catalog.Project) bool {
				for _, secret := range []string{"password", "oauth_client_secret"} {
					opens(seal.Context(p.UUID, secret))
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return sign
	})
}

// compareFresh compares the server's answers with those of a new one on the same files.
func (d *desk) compareFresh(t testing.TB) {
	t.Helper()
	fresh, err := d.load(t, false)
	if err != nil {
		return
	}
	if here, there := tellAll(t, d.resolver), tellAll(t, fresh.resolver); here != there {
		t.Errorf("the server says\n%s\na fresh one\n%s", here, there)
	}
}

var times = regexp.MustCompile(`"(created|updated)At":"[^"]*"`)

// tellAll returns everything that the platform API answers, except for the times.
func tellAll(t testing.TB, r *resolver.Resolver) string {
	t.Helper()
	var b []byte
	err := r.EachProject(func(p *catalog.Project) bool {
		b = append(rowjson.AppendProject(b, p), '\n')
		service, err1 := r.ServiceSettings(p.ID)
		auth, err2 := r.AuthSettings(p.ID)
		domains, _, err3 := r.Domains(p.ID, resolver.Query{})
		if err1 != nil || err2 != nil || err3 != nil {
			t.Error(err1, err2, err3)
			return false
		}
		b = append(rowjson.AppendServiceSettings(b, p.ID, service), '\n')
		b = append(rowjson.AppendAuthSettings(b, p.ID, auth), '\n')
		for _, x := range domains {
			b = append(rowjson.AppendDomain(b, x), '\n')
		}
		if smtp, err := r.SMTPConfig(p.ID); err == nil {
			b = append(rowjson.AppendSMTPConfig(b, p.ID, smtp), fmt.Sprintf(" %d %s\n", smtp.Password.Source, smtp.Password.Ref)...)
		}
		templates, _, err := r.Templates(p.ID, resolver.Query{})
		if err != nil {
			t.Error(err)
		}
		for _, x := range templates {
			b = append(rowjson.AppendTemplate(b, x), '\n')
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	for _, k := range r.Keys().All() {
		b = append(rowjson.AppendKey(b, &rowjson.KeyRow{Key: &k.Key}), '\n')
	}
	return times.ReplaceAllString(string(b), "")
}
