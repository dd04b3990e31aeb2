package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// An Object names what the API has calls for.
type Object struct {
	Kind    catalog.Kind // project, domain, template, key, webhook, settings or SMTP config
	Project int64        // 0 for a key or webhook, and for a project that is to be made
	ID      int64        // of a domain or a template; 0 for one that is to be made
	Key     string       // the name of a key or webhook; "" for one that is to be made
}

// path returns where an object is, or where it is made.
func (o Object) path() string {
	id := ""
	if o.ID != 0 {
		id = "/" + strconv.FormatInt(o.ID, 10)
	}
	switch o.Kind {
	case catalog.KindDomain:
		return projectPath(o.Project, "/domains"+id)
	case catalog.KindServiceSettings:
		return projectPath(o.Project, "/service-settings")
	case catalog.KindAuthSettings:
		return projectPath(o.Project, "/auth-settings")
	case catalog.KindSMTPConfig:
		return mailPath(o.Project, "/smtp-config")
	case catalog.KindTemplate:
		return mailPath(o.Project, "/templates"+id)
	case catalog.KindKey:
		return strings.TrimSuffix(keysPath+"/"+url.PathEscape(o.Key), "/")
	case catalog.KindWebhook:
		return strings.TrimSuffix(webhooksPath+"/"+url.PathEscape(o.Key), "/")
	}
	if o.Project == 0 {
		return projectsPath
	}
	return projectPath(o.Project, "")
}

func (c *Client) serviceOf(kind catalog.Kind) *service {
	if kind == catalog.KindSMTPConfig || kind == catalog.KindTemplate {
		return c.mail
	}
	return c.platform
}

// A State is an object as the server has it.
type State struct {
	ETag   string
	Shared bool // a template that all projects share

	row row
}

// State reads an object. One that does not exist is an *Error with status 404.
func (c *Client) State(ctx context.Context, o Object) (s State, err error) {
	r, err := c.serviceOf(o.Kind).view(ctx, o.path(), &s.row)
	if err != nil {
		return s, err
	}
	s.ETag = r.header.Get("ETag")
	s.Shared = o.Kind == catalog.KindTemplate && s.row.number("projectId") == 0
	return s, nil
}

// Fill sets the fields of the object's noun that the answer has.
func (s *State) Fill(fields []catalog.Field) error {
	return s.row.fill(fields, catalog.FieldNames(fields))
}

// A Verb is what an Edit does.
type Verb string

// The verbs. Save changes the fields that are sent; of a template it makes the one with the code that is sent.
const (
	Create Verb = http.MethodPost
	Save   Verb = http.MethodPut
	Delete Verb = http.MethodDelete
	Rotate Verb = "rotate" // a key or webhook
	Bulk   Verb = "bulk"   // of several projects, see ProjectsSet
)

// A ProjectsSet is what a Bulk edit of projects sends.
type ProjectsSet struct {
	Projects []string           // slugs, 1 to 1,000
	Status   string             // "": it stays
	Labels   map[string]*string // those that are set; nil removes one
}

// Edit returns the edit, which is made for all of the projects or for none.
func (s *ProjectsSet) Edit() *Edit {
	set := map[string]any{}
	if s.Status != "" {
		set["status"] = s.Status
	}
	if len(s.Labels) > 0 {
		set["labels"] = s.Labels
	}
	return &Edit{Object: Object{Kind: catalog.KindProject}, Verb: Bulk,
		Fields: map[string]any{"projects": s.Projects, "set": set}}
}

// An Edit is a change of one object.
type Edit struct {
	Object
	Verb    Verb
	Fields  map[string]any // what is sent, by the API's names; nil for Delete
	IfMatch string         // the ETag that the object must have; "": any
	IfNew   bool           // nothing may be replaced

	Message  string // of the commit; "": one that says what changed
	Proposal string // the change is put on the branch of this proposal; "": it goes live
}

// A Dry is what an Edit would change.
type Dry struct {
	Diff     string // of the files
	Problems []Problem
}

// A Problem is what is wrong with a file, or may be.
type Problem struct{ Summary, Detail string }

// Made is what an Edit has done.
type Made struct {
	Project int64  `json:"-"` // that was made; 0: none
	Commit  string `json:"-"` // "": not known yet, or the server keeps no history
	Request string `json:"-"` // its id, by which the audit trail knows the change
	Branch  string // of the proposal
	Key     string // the text of a new key
	Secret  string // of a webhook, where the service has made it
}

// Try reports what an Edit would change, and changes nothing.
func (c *Client) Try(ctx context.Context, e *Edit) (d Dry, err error) {
	_, err = c.edit(ctx, e, "?dryRun=1", &d)
	return d, err
}

// Make makes an Edit.
func (c *Client) Make(ctx context.Context, e *Edit) (m Made, err error) {
	var into any = &m
	if e.Verb == Bulk && e.Proposal == "" {
		into = new([]row)
	}
	r, err := c.edit(ctx, e, "", into)
	if err != nil {
		return m, err
	}
	m.Request = r.header.Get("X-Request-Id")
	if m.Commit = r.header.Get("X-Commit"); e.Kind != catalog.KindKey {
		m.Key = "" // a proposal names its key
	}
	if id, made := strings.CutPrefix(r.header.Get("Location"), projectsPath+"/"); made {
		m.Project, _ = strconv.ParseInt(id, 10, 64) // 0: something in a project
	}
	return m, nil
}

func (c *Client) edit(ctx context.Context, e *Edit, query string, into any) (*reply, error) {
	q := request{method: string(e.Verb), path: e.path(), header: http.Header{},
		again: []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}}
	if e.Fields != nil {
		q.body = e.Fields
	}
	switch e.Verb {
	case Rotate:
		if q.method, q.path = http.MethodPost, q.path+"/rotate"; q.body == nil {
			q.body = struct{}{}
		}
	case Bulk:
		q.method, q.path = http.MethodPost, q.path+"/bulk"
	}
	q.path += query
	for name, value := range map[string]string{"If-Match": e.IfMatch, "X-Change-Message": e.Message,
		headerPropose: e.Proposal} {
		if value != "" {
			q.header.Set(name, value)
		}
	}
	if e.IfNew {
		q.header.Set("If-None-Match", "*")
	}
	return c.serviceOf(e.Kind).do(ctx, q, into)
}

const keysPath = "/api/platform/keys"

// A Key is a key as the list of keys has it.
type Key struct {
	Name       string
	ID         string
	Allow      []string
	Owner      string   // the key also covers the projects with this owner; "": none
	Projects   []string // slugs; nil: every project
	ExpiresAt  string   // "": never
	LastUsedAt string   // "": not yet
	CreatedAt  string   // "": not known
}

// Keys lists the keys.
func (c *Client) Keys(ctx context.Context) (keys []Key, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, keysPath, nil, &keys)
	return keys, err
}

// Everything reports whether the key covers every project.
func (k Key) Everything() bool { return k.Projects == nil }

// Covers reports whether the key covers a project by its list.
func (k Key) Covers(slug string) bool { return k.Everything() || slices.Contains(k.Projects, slug) }
