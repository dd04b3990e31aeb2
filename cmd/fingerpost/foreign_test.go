package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
)

// foreignKey is the key that a foreign server requires.
const foreignKey = "sentinel-platform-key"

type object = map[string]any

// A foreign is another implementation of the service: it follows the source specification, and beyond that only its
// switches.
type foreign struct {
	*httptest.Server
	paging    bool // lists have pages, ten rows where nobody asks
	strict    bool // a query that it does not know is 400
	mail      bool
	bodies    bool // GET of one template
	deletes   bool // DELETE of domains, templates and SMTP configs
	postMail  bool // mail is saved by POST
	statusful bool // PUT sets the status
	flatForm  object
	mangle    func(w http.ResponseWriter, r *http.Request) bool // answers instead

	mu        sync.Mutex // guards what follows
	next      int64
	projects  []object
	domains   map[int64][]object
	service   map[int64]object
	auth      map[int64]object
	smtp      map[int64]object
	templates map[int64][]object // 0: default ones
	requests  []string
	passwords []any
}

func newForeign(t *testing.T) *foreign {
	f := &foreign{mail: true, bodies: true, deletes: true, statusful: true, paging: true, next: 100,
		domains: map[int64][]object{}, service: map[int64]object{}, auth: map[int64]object{}, smtp: map[int64]object{}, templates: map[int64][]object{}}
	f.start(t)
	return f
}

func (f *foreign) start(t *testing.T) {
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
}

// restart returns when all requests that clients have given up are over: until then they may still change something.
func (f *foreign) restart(t *testing.T) {
	f.Close()
	f.start(t)
}

func (f *foreign) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	if f.mangle != nil && f.mangle(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	var in object
	_ = json.Unmarshal(body, &in)
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/mail/projects/"):
		if r.Header.Get("X-Internal-Service-Token") != foreignKey || r.Header.Get("X-Internal-Service-Name") == "" {
			refuse(w, 401, "UNAUTHORIZED", "no")
			return
		}
		if !f.mail {
			refuse(w, 404, "NOT_FOUND", "no such path")
			return
		}
		id, _ := strconv.ParseInt(path[3], 10, 64)
		f.serveMail(w, r, id, path[4:], in)
	case !strings.HasPrefix(r.URL.Path, "/api/platform/projects"):
		refuse(w, 404, "NOT_FOUND", "no such path")
	case r.Header.Get("X-PLATFORM-KEY") != foreignKey:
		refuse(w, 401, "UNAUTHORIZED", "the key "+r.Header.Get("X-PLATFORM-KEY")+" is wrong")
	default:
		f.servePlatform(w, r, path[3:], in)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"success": false, "error": object{"code": code, "message": message}})
}

func succeed(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"success": true, "message": "ok", "data": data})
}

func (f *foreign) list(w http.ResponseWriter, r *http.Request, rows []object) {
	q := r.URL.Query()
	if f.strict && len(q) > 0 {
		refuse(w, 400, "VALIDATION_ERROR", "unknown parameters")
		return
	}
	if rows == nil {
		rows = []object{}
	}
	if !f.paging {
		succeed(w, 200, rows)
		return
	}
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil {
			return n
		}
		return otherwise
	}
	page, limit, total := number("page", 1), number("limit", 10), len(rows)
	rows = rows[min((page-1)*limit, total):min(page*limit, total)]
	_ = json.NewEncoder(w).Encode(object{"success": true, "message": "ok", "data": rows,
		"meta": object{"total": total, "page": page, "limit": limit, "totalPages": (total + limit - 1) / limit}})
}

func (f *foreign) id() int64 { f.next++; return f.next }

func (f *foreign) add(p object, domains ...object) int64 {
	id := f.id()
	made := object{"id": id, "uuid": fmt.Sprintf("%08x-0000-4000-8000-000000000000", id), "description": nil, "status": "DRAFT"}
	maps.Copy(made, p)
	id = made["id"].(int64)
	f.projects = append(f.projects, made)
	for _, d := range domains {
		f.addDomain(id, d)
	}
	f.service[id] = object{"id": f.id(), "projectId": id, "authEnabled": false, "mailEnabled": false, "smsEnabled": false, "auditEnabled": false}
	f.auth[id] = object{"id": f.id(), "projectId": id, "registrationMode": "OPEN", "emailVerificationRequired": false,
		"phoneVerificationRequired": false, "approvalRequired": false, "inviteOnly": false, "twoFactorRequired": false}
	return id
}

func (f *foreign) addDomain(project int64, d object) object {
	made := object{"id": f.id(), "projectId": project, "primary": false, "active": true}
	maps.Copy(made, d)
	f.domains[project] = append(f.domains[project], made)
	return made
}

func (f *foreign) servePlatform(w http.ResponseWriter, r *http.Request, path []string, in object) {
	switch {
	case len(path) == 0 && r.Method == "GET":
		f.list(w, r, f.projects)
	case len(path) == 0 && r.Method == "POST":
		id := f.add(object{"name": in["name"], "slug": in["slug"], "description": in["description"]})
		succeed(w, 201, f.project(id))
	case path[0] == "resolve":
		if f.flatForm == nil {
			succeed(w, 200, object{"project": object{}, "authSettings": object{}, "serviceSettings": object{}, "matchedDomain": object{}})
			return
		}
		succeed(w, 200, f.flatForm)
	case path[0] == "by-slug":
		at := slices.IndexFunc(f.projects, func(p object) bool { return len(path) > 1 && p["slug"] == path[1] })
		if at < 0 {
			refuse(w, 404, "NOT_FOUND", "no such project")
			return
		}
		succeed(w, 200, f.projects[at])
	default:
		id, _ := strconv.ParseInt(path[0], 10, 64)
		f.serveProject(w, r, id, path[1:], in)
	}
}

func (f *foreign) project(id int64) object {
	at := slices.IndexFunc(f.projects, func(p object) bool { return p["id"] == id })
	if at < 0 {
		return nil
	}
	return f.projects[at]
}

func (f *foreign) serveProject(w http.ResponseWriter, r *http.Request, id int64, rest []string, in object) {
	p := f.project(id)
	call := r.Method + " " + strings.Join(rest, "/")
	switch {
	case p == nil:
		refuse(w, 404, "NOT_FOUND", "no such project")
	case call == "PUT ":
		if !f.statusful {
			delete(in, "status")
		}
		maps.Copy(p, in)
		succeed(w, 200, p)
	case call == "DELETE ":
		f.projects = slices.DeleteFunc(f.projects, func(o object) bool { return o["id"] == id })
		w.WriteHeader(204)
	case call == "GET domains":
		f.list(w, r, f.domains[id])
	case call == "POST domains":
		succeed(w, 201, f.addDomain(id, in))
	case call == "GET service-settings":
		succeed(w, 200, f.service[id])
	case call == "PUT service-settings":
		maps.Copy(f.service[id], in)
		succeed(w, 200, f.service[id])
	case call == "GET auth-settings":
		succeed(w, 200, f.auth[id])
	case call == "PUT auth-settings":
		maps.Copy(f.auth[id], in)
		succeed(w, 200, f.auth[id])
	case len(rest) == 2 && rest[0] == "domains":
		n, _ := strconv.ParseInt(rest[1], 10, 64)
		at := slices.IndexFunc(f.domains[id], func(d object) bool { return d["id"] == n })
		switch {
		case at < 0:
			refuse(w, 404, "NOT_FOUND", "no such domain")
		case r.Method == "PUT":
			maps.Copy(f.domains[id][at], in)
			succeed(w, 200, f.domains[id][at])
		case r.Method == "DELETE" && f.deletes:
			f.domains[id] = slices.Delete(f.domains[id], at, at+1)
			succeed(w, 200, nil)
		default:
			refuse(w, 405, "METHOD_NOT_ALLOWED", "no")
		}
	default:
		refuse(w, 404, "NOT_FOUND", "no such path")
	}
}

func (f *foreign) serveMail(w http.ResponseWriter, r *http.Request, id int64, rest []string, in object) {
	save := "PUT"
	if f.postMail {
		save = "POST"
	}
	switch call := r.Method + " " + rest[0]; {
	case call == "GET smtp-config" && f.smtp[id] != nil:
		succeed(w, 200, f.smtp[id])
	case call == save+" smtp-config":
		f.passwords = append(f.passwords, in["password"])
		delete(in, "password")
		in["id"], in["projectId"] = f.id(), id
		f.smtp[id] = in
		succeed(w, 200, in)
	case call == "GET templates" && len(rest) == 1:
		var rows []object
		for _, t := range slices.Concat(f.templates[0], f.templates[id]) {
			t = maps.Clone(t)
			delete(t, "bodyHtml")
			delete(t, "bodyText")
			rows = append(rows, t)
		}
		succeed(w, 200, slices.Concat([]object{}, rows))
	case call == "GET templates" && f.bodies:
		n, _ := strconv.ParseInt(rest[1], 10, 64)
		for _, t := range slices.Concat(f.templates[0], f.templates[id]) {
			if t["id"] == n {
				succeed(w, 200, t)
				return
			}
		}
		refuse(w, 404, "NOT_FOUND", "no such template")
	case call == save+" templates" && len(rest) == 1:
		succeed(w, 200, f.saveTemplate(id, in))
	default:
		refuse(w, cmp.Or(map[bool]int{true: 405}[rest[0] == "templates" && len(rest) == 1], 404), "NOT_FOUND", "no such path or object")
	}
}

func (f *foreign) saveTemplate(project int64, in object) object {
	for _, t := range f.templates[project] {
		if t["code"] == in["code"] {
			maps.Copy(t, in)
			return t
		}
	}
	made := object{"id": f.id(), "projectId": project, "active": true, "defaultTemplate": project == 0, "bodyHtml": nil, "bodyText": nil}
	if project == 0 {
		made["projectId"] = nil
	}
	maps.Copy(made, in)
	f.templates[project] = append(f.templates[project], made)
	return made
}

// asked counts the requests that begin with a text.
func (f *foreign) asked(begin string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, begin) {
			n++
		}
	}
	return n
}

// A call is what a command did.
type call struct {
	code     int
	out, err string
}

// invoke runs a command of the program in this process.
func invoke(t *testing.T, args ...string) call {
	t.Helper()
	return invokeIn(t, context.Background(), args...)
}

func invokeIn(t *testing.T, ctx context.Context, args ...string) call {
	t.Helper()
	var out, errw bytes.Buffer
	code := runContext(ctx, args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &errw})
	return call{code, out.String(), errw.String()}
}

// with runs a command against the server.
func (f *foreign) with(t *testing.T, dir string, args ...string) call {
	t.Helper()
	t.Setenv("FINGERPOST_KEY", foreignKey)
	c := invoke(t, append(args, "--url", f.URL, "--config", dir)...)
	for _, text := range []string{c.out, c.err} {
		if strings.Contains(text, "sentinel") {
			t.Errorf("%v shows a secret: %s", args, text)
		}
	}
	return c
}
