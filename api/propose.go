package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	headerPropose = "X-Propose"
	proposalsPath = "/api/platform/proposals"
	proposalPath  = "/api/platform/proposals/{name}"
	applyPath     = "/api/platform/proposals/{name}/apply"
)

// proposeTime is how long a call on a proposal may wait for the files of its branch.
const proposeTime = 3 * writeTime

var (
	proposalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	refuseNoGit  = &refusal{Code: catalog.CodeGitOff,
		Message: "this server keeps no git history (serve --git), so nothing can be proposed"}
	refuseProposal = &refusal{Code: catalog.CodeForbidden, Message: "the proposal changes more than the key's projects"}
)

// A Proposal is a branch of changes that are not live.
type Proposal struct {
	Name, Branch, Commit string
	Key, Author          string // of its first commit
	Created              time.Time
	Mergeable            bool
	Files                []catalog.FileEdit
}

// Proposals are the proposals in the git repository; *gitrepo.Repo is behind it. The errors for the client are
// *catalog.Error.
type Proposals interface {
	// Propose runs write on the state of the proposal of a name, that of the branch if there is none, and adds what it has
	// changed to the proposal. An error of write is returned as it is, and nothing was changed.
	Propose(ctx context.Context, name string, write func(ProposedState) error) (*Proposal, error)
	// ViewProposal runs read on the state of a proposal; NOT_FOUND if there is none of the name.
	ViewProposal(ctx context.Context, name string, read func(ProposedState) error) error
	Proposals(ctx context.Context) ([]*Proposal, error)
	// ApplyProposal makes a proposal live and removes it, DropProposal removes it. check decides.
	ApplyProposal(ctx context.Context, name string, by catalog.Author, check func(*Proposal) error) (commit string,
		err error)
	DropProposal(ctx context.Context, name string, check func(*Proposal) error) error
	// CompareURL returns the page that shows a branch, "" if there is none.
	CompareURL(branch string) string
}

// A ProposedState is what the files of a proposal's branch declare. It is valid until the function returns that got it.
type ProposedState struct {
	Resolver  *resolver.Resolver
	Files     Files
	Explainer Explainer
	Broken    []string // files that do not load
}

// proposedReads are the reads that can show the state of a proposal: those of what files declare.
var proposedReads = map[string]bool{
	"/api/platform/projects": true, "/api/platform/projects/{id}": true, blockPath: true,
	"/api/platform/projects/by-slug/{slug}": true,
	"/api/platform/projects/{id}/domains":   true, "/api/platform/projects/{projectId}/domains/{domainId}": true,
	"/api/platform/domains":                        true,
	"/api/platform/projects/{id}/service-settings": true, "/api/platform/projects/{id}/auth-settings": true,
	smtpConfigPath: true, templatesPath: true, templatePath: true,
}

// readPropose reads the name of the proposal that a call is for.
func (r *request) readPropose() error {
	values := r.ctx.Request.Header.PeekAll(headerPropose)
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return invalidField(headerPropose, "must be given once")
	case r.route.method == http.MethodGet && !proposedReads[r.route.path]:
		return invalidField(headerPropose, "is not for this call: no proposal changes what it shows")
	case r.route.method != http.MethodGet && r.route.allow != catalog.MayWrite:
		return invalidField(headerPropose, "is not for this call: it changes no file")
	case strings.HasPrefix(r.route.path, proposalsPath), strings.HasPrefix(r.route.path, keysPath):
		return invalidField(headerPropose, "is not for this call")
	}
	name := string(values[0])
	if !proposalName.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".lock") ||
		strings.HasSuffix(name, ".") {
		return invalidField(headerPropose,
			"must be 1 to 63 of a-z, 0-9, '.', '_' and '-', begin with a letter or digit, and be no name that git refuses")
	}
	r.propose = name
	return nil
}

// A proposed ends a handler whose write was proposed instead of made. The caller of the handler answers with it.
type proposed struct{ p *Proposal }

func (*proposed) Error() string { return "proposed: nothing is live yet" }

// inProposal runs a call on the state of a proposal: the same handlers on another resolver and other files. So
// preconditions, ids and conflicts are those of the proposal.
func (s *Server) inProposal(r *request) error {
	if s.proposals == nil {
		return refuseNoGit
	}
	ctx, cancel := context.WithTimeout(context.Background(), proposeTime)
	defer cancel()
	run := func(state ProposedState) error {
		err := r.route.run(s.on(state), r)
		if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeNotFound && len(state.Broken) > 0 {
			return &catalog.Error{Code: e.Code, Message: e.Message + "; files of the proposal's branch that do not load: " +
				strings.Join(state.Broken, ", ")}
		}
		return err
	}
	if r.route.method == http.MethodGet {
		return s.proposals.ViewProposal(ctx, r.propose, run)
	}
	// One call at a time works on the state: a client that sends its body slowly must not hold the others up. A key that
	// may not write is refused before its body is read.
	if r.permit() == nil {
		if _, err := s.bodyText(r); err != nil {
			return err
		}
	}
	p, err := s.proposals.Propose(ctx, r.propose, run)
	if err != nil {
		return err
	}
	return &proposed{p}
}

// on returns a Server whose handlers work on the state of a proposal, for one call. It serves no listener.
func (s *Server) on(state ProposedState) *Server {
	return &Server{
		resolver: state.Resolver, files: state.Files, explainer: state.Explainer,
		plan: s.plan, log: s.log, keys: s.keys, ids: s.ids, metrics: s.metrics, limits: s.limits, bodies: s.bodies,
		cacheControl: s.cacheControl, authIssuer: s.authIssuer,
	}
}

// A proposalAnswer is a proposal as clients see it.
type proposalAnswer struct {
	Name       string  `json:"name"`
	Branch     string  `json:"branch"`
	Commit     string  `json:"commit"`
	Author     string  `json:"author"`
	Key        *string `json:"key"`  // null if its first commit names none
	Plan       any     `json:"plan"` // null if its files cannot be read
	Mergeable  bool    `json:"mergeable"`
	CreatedAt  string  `json:"createdAt"`
	CompareURL *string `json:"compareUrl"`
}

func (s *Server) answerOf(p *Proposal) *proposalAnswer {
	a := &proposalAnswer{Name: p.Name, Branch: p.Branch, Commit: p.Commit, Author: p.Author, Mergeable: p.Mergeable,
		CreatedAt: p.Created.UTC().Format("2006-01-02T15:04:05.000000")}
	if was, is, err := declarationsOf(p); err == nil && s.plan != nil {
		a.Plan = s.plan(was, is, s.resolver.Defaults())
	}
	if p.Key != "" {
		a.Key = &p.Key
	}
	if url := s.proposals.CompareURL(p.Branch); url != "" {
		a.CompareURL = &url
	}
	return a
}

// declarationsOf decodes the files of a proposal, before and after.
func declarationsOf(p *Proposal) (was, is []*catalog.Declared, err error) {
	for _, f := range p.Files {
		b, a, err := configsrc.DecodeEdit(&f)
		if err != nil {
			return nil, nil, err
		}
		was, is = append(was, b), append(is, a)
	}
	return was, is, nil
}

func (s *Server) succeedProposed(ctx *fasthttp.RequestCtx, p *proposed) error {
	data, err := json.Marshal(s.answerOf(p.p))
	if err != nil {
		return err
	}
	ctx.Response.ResetBody()
	s.succeed(ctx, p.Error(), data)
	ctx.Response.SetStatusCode(http.StatusAccepted)
	return nil
}

// reaches reports whether a key may see or apply a proposal: one that is limited to projects needs all projects in its
// files, and none of what belongs to no project.
func reaches(k *resolver.Key, p *Proposal) bool {
	if k.EveryProject() {
		return true
	}
	was, is, err := declarationsOf(p)
	if err != nil {
		return false
	}
	for _, d := range append(was, is...) {
		if len(d.Keys)+len(d.Templates) > 0 || d.Defaults != nil || d.Sealing != nil {
			return false
		}
		for i := range d.Projects {
			if !k.Covers(d.Projects[i].Project.ID) {
				return false
			}
		}
	}
	return true
}

// listProposals answers GET /api/platform/proposals.
func (s *Server) listProposals(r *request) error {
	if err := r.permit(); err != nil {
		return err
	}
	if s.proposals == nil {
		return refuseNoGit
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	list, err := s.proposals.Proposals(ctx)
	if err != nil {
		return err
	}
	answers := []*proposalAnswer{}
	for _, p := range list {
		if reaches(r.key, p) {
			answers = append(answers, s.answerOf(p))
		}
	}
	data, err := json.Marshal(answers)
	if err == nil {
		s.succeed(r.ctx, "proposals found", data)
	}
	return err
}

// onProposal checks what calls on one proposal have in common.
func (s *Server) onProposal(r *request) (name string, ctx context.Context, cancel func(), err error) {
	name, _ = r.ctx.UserValue("name").(string)
	if !proposalName.MatchString(name) {
		return "", nil, nil, invalidField("name", "is no name of a proposal")
	}
	if r.dry {
		return "", nil, nil, invalidField(dryRunParam, "is not for this call: the proposal's plan shows what it changes")
	}
	if s.proposals == nil {
		return "", nil, nil, refuseNoGit
	}
	ctx, cancel = context.WithTimeout(context.Background(), proposeTime)
	return name, ctx, cancel, nil
}

// applyProposal answers POST /api/platform/proposals/{name}/apply.
func (s *Server) applyProposal(r *request) error {
	name, ctx, cancel, err := s.onProposal(r)
	if err != nil {
		return err
	}
	defer cancel()
	if err := r.permit(); err != nil {
		return err
	}
	by := catalog.Author{Door: catalog.DoorAPI, Actor: r.actor, Key: r.key.Name, RequestID: requestID(r.ctx)}
	commit, err := s.proposals.ApplyProposal(ctx, name, by, func(p *Proposal) error {
		if !reaches(r.key, p) {
			return refuseProposal
		}
		if _, _, err := declarationsOf(p); err != nil {
			return &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the proposal would break a file: " + err.Error()}
		}
		return nil
	})
	if err != nil {
		return err
	}
	by.Commit = commit
	s.resolver.Note(catalog.AuditApply, by, catalog.FieldChange{Field: "proposal", After: name})
	r.ctx.Response.Header.Set(headerCommit, commit)
	data, err := json.Marshal(map[string]string{"name": name, "commit": commit})
	if err == nil {
		s.succeed(r.ctx, "proposal applied", data)
	}
	return err
}

// dropProposal answers DELETE /api/platform/proposals/{name}: for a key with write on all projects concerned, and for
// the key that made it.
func (s *Server) dropProposal(r *request) error {
	name, ctx, cancel, err := s.onProposal(r)
	if err != nil {
		return err
	}
	defer cancel()
	if r.key.Allow&(catalog.MayWrite|catalog.MayPropose) == 0 {
		return refuseAllow
	}
	err = s.proposals.DropProposal(ctx, name, func(p *Proposal) error {
		if p.Key == r.key.Name || r.key.Allow&catalog.MayWrite != 0 && reaches(r.key, p) {
			return nil
		}
		return refuseProposal
	})
	if err != nil {
		return err
	}
	s.resolver.Note(catalog.AuditDrop, catalog.Author{Door: catalog.DoorAPI, Actor: r.actor, Key: r.key.Name,
		RequestID: requestID(r.ctx)},
		catalog.FieldChange{Field: "proposal", After: name})
	s.succeed(r.ctx, "proposal dropped", []byte("null"))
	return nil
}
