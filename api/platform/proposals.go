package platform

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	headerPropose = "X-Propose"
	proposalsPath = "/api/platform/proposals"
	proposalPath  = "/api/platform/proposals/{name}"
	applyPath     = "/api/platform/proposals/{name}/apply"
	updatePath    = "/api/platform/proposals/{name}/update"
	approvePath   = "/api/platform/proposals/{name}/approve"
)

// proposeTime is how long a call on a proposal may wait for the files of its branch.
const proposeTime = 3 * web.WriteTime

var (
	refuseNoGit = &catalog.Error{Code: catalog.CodeGitOff,
		Message: "this server keeps no git history (serve --git), so nothing can be proposed"}
	refuseProposal = &catalog.Error{Code: catalog.CodeForbidden, Requires: catalog.MayWrite,
		Message: "a proposal is dropped by a key with write, or by the key that made it"}
)

// noProposal is the error for a name of which the caller sees no proposal.
func noProposal(name string) error {
	return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such proposal: " + name}
}

// nameTaken is the error for a name that the caller cannot use.
func nameTaken(name string) error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: "the name " + name + " is taken; choose another one"}
	e.Problems.Addf(headerPropose, "is taken")
	return e
}

// ReadPropose reads the name of the proposal that a call is for.
func ReadPropose(r *web.Request, rt *web.Route) error {
	values := r.Ctx.Request.Header.PeekAll(headerPropose)
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return web.InvalidField(headerPropose, "must be given once")
	case rt.Method == http.MethodGet && rt.Marks&web.Proposable == 0:
		return web.InvalidField(headerPropose, "is not for this call: what it shows is always live")
	case rt.Method != http.MethodGet && r.Allow != catalog.MayWrite:
		return web.InvalidField(headerPropose, "is not for this call: it changes no file")
	case rt.Marks&web.LiveOnly != 0:
		return web.InvalidField(headerPropose, "is not for this call")
	}
	name := string(values[0])
	if !catalog.ValidProposalName(name) {
		return web.InvalidField(headerPropose, "must "+catalog.ProposalNameRule)
	}
	r.Propose = name
	return nil
}

// Live is what proposals need of the live state; *resolver.Resolver implements it.
type Live interface {
	Keys() *resolver.KeySet
	Defaults() *catalog.Defaults
	Note(action string, by catalog.Author, changes ...catalog.FieldChange)
}

// Proposals runs calls on the state of proposals, and lists, applies and drops them. Safe for concurrent use.
type Proposals struct {
	Set     *proposals.Set // nil: nothing can be proposed
	Plan    Planner        // nil: answers have no plan
	Live    Live
	Blocked map[string]bool // public ids of keys that are refused even if the files declare them
}

// A Proposed ends a handler whose write was proposed instead of made. The caller of the handler answers with it.
type Proposed struct {
	p   *proposals.Proposal
	key *resolver.Key
}

func (*Proposed) Error() string { return "proposed: nothing is live yet" }

// Run runs a call on the state of the proposal that the request names: the same handlers on other projects and other
// files. So preconditions, ids and conflicts are those of the proposal. A write that was proposed returns a *Proposed.
func (s *Proposals) Run(r *web.Request, call func(*resolver.Overlay, *edits.Overlay) error) error {
	if s.Set == nil {
		return refuseNoGit
	}
	ctx, cancel := context.WithTimeout(context.Background(), proposeTime)
	defer cancel()
	run := func(state *resolver.Overlay, files *edits.Overlay) error {
		broken := files.Broken()
		err := call(state, files)
		if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeNotFound && len(broken) > 0 &&
			r.Key.EveryProject() {
			return &catalog.Error{Code: e.Code, Message: e.Message + "; files of the proposal's branch that do not load: " +
				strings.Join(broken, ", ")}
		}
		return err
	}
	if r.Ctx.IsGet() || r.Ctx.IsHead() {
		return s.Set.View(ctx, r.Key.ID, r.Propose, seenBy(r.Key, noProposal(r.Propose)), run)
	}
	// One call at a time works on the state: a client that sends its body slowly must not hold the others up. A key that
	// may not write is refused before its body is read.
	if r.Permit() == nil {
		if _, err := r.BodyText(); err != nil {
			return err
		}
	}
	p, err := s.Set.Propose(ctx, r.Propose, writer(r.Key), seenBy(r.Key, nameTaken(r.Propose)), run)
	if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeRateLimited {
		web.RetryAfter(r.Ctx, time.Hour)
	}
	if err != nil {
		return err
	}
	return &Proposed{p, r.Key}
}

// A proposalAnswer is a proposal as clients see it.
type proposalAnswer struct {
	Name       string  `json:"name"`
	Branch     string  `json:"branch"`
	Commit     string  `json:"commit"`
	Title      string  `json:"title"`
	Author     string  `json:"author"`
	Key        *string `json:"key"`      // null if its first commit names none
	Readable   bool    `json:"readable"` // its files can be read
	Mergeable  bool    `json:"mergeable"`
	CreatedAt  string  `json:"createdAt"`
	UpdatedAt  string  `json:"updatedAt"`
	CompareURL *string `json:"compareUrl"`
}

// planOf is what applying a proposal would change, for a key that sees it; nil if its files cannot be read.
func (s *Proposals) planOf(p *proposals.Proposal, to *resolver.Key) any {
	w := p.Weight()
	if w.Broken != nil || s.Plan == nil {
		return nil
	}
	return s.Plan(declarationsFor(to, w.Was), declarationsFor(to, w.Is), s.Live.Defaults())
}

// answerOf describes a proposal as lists have it.
func (s *Proposals) answerOf(p *proposals.Proposal) *proposalAnswer {
	a := &proposalAnswer{Name: p.Name, Branch: p.Branch, Commit: p.Commit, Title: p.Title, Author: p.Author,
		Readable: p.Weight().Broken == nil, Mergeable: p.Mergeable, CreatedAt: catalog.Moment(p.Created),
		UpdatedAt: catalog.Moment(p.Written)}
	if len(p.Keys) > 0 && p.Keys[0].Name != "" {
		a.Key = &p.Keys[0].Name
	}
	if url := s.Set.CompareURL(p.Branch); url != "" {
		a.CompareURL = &url
	}
	return a
}

// declarationsFor copies the declarations of files for a plan. A key that is limited to projects sees nothing with
// lists of projects.
func declarationsFor(to *resolver.Key, files []*catalog.Declared) []*catalog.Declared {
	list := make([]*catalog.Declared, len(files))
	for i, d := range files {
		if list[i] = d.Clone(); !to.EveryProject() {
			list[i].DropNamed()
		}
	}
	return list
}

// A proposedAnswer is the answer to a write that was proposed.
type proposedAnswer struct {
	*proposalAnswer
	Plan any    `json:"plan"` // null if its files cannot be read
	Diff string `json:"diff"`
}

// Answer answers a write that was proposed.
func (s *Proposals) Answer(r *web.Request, p *Proposed) error {
	data, err := json.Marshal(proposedAnswer{s.answerOf(p.p), s.planOf(p.p, p.key),
		p.p.Weight().Diff(web.CoverageOf(p.key))})
	if err != nil {
		return err
	}
	r.Ctx.Response.ResetBody()
	r.Succeed(p.Error(), data)
	r.Ctx.Response.SetStatusCode(http.StatusAccepted)
	return nil
}

// sees returns whether a key may know of a proposal: if it reaches all that the proposal touches, which for a key that
// is limited to projects is nothing but its projects.
func sees(k *resolver.Key) func(*proposals.Proposal) bool {
	covers := web.CoverageOf(k)
	return func(p *proposals.Proposal) bool {
		return p.Proposed.Within(covers) && (p.Merged == nil || p.Merged.Within(covers))
	}
}

// seenBy returns a check that refuses what a key may not know of.
func seenBy(k *resolver.Key, refusal error) proposals.Check {
	sees := sees(k)
	return func(p *proposals.Proposal) error {
		if !sees(p) {
			return refusal
		}
		return nil
	}
}

// list answers GET /api/platform/proposals.
func (s *Proposals) list(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	if s.Set == nil {
		return refuseNoGit
	}
	ctx, cancel := context.WithTimeout(context.Background(), proposeTime)
	defer cancel()
	list, err := s.Set.List(ctx, r.Key.ID, sees(r.Key))
	if err != nil {
		return err
	}
	answers := []*proposalAnswer{}
	for _, p := range list {
		answers = append(answers, s.answerOf(p))
	}
	data, err := json.Marshal(answers)
	if err == nil {
		r.Succeed("proposals found", data)
	}
	return err
}

// A lookAnswer is a proposal as a person wants to see it before it is applied.
type lookAnswer struct {
	*proposalAnswer
	Plan       any            `json:"plan"` // null if its files cannot be read
	Commits    []commitAnswer `json:"commits"`
	AllCommits bool           `json:"allCommits"`
	Diff       string         `json:"diff"`
	DiffLines  int            `json:"diffLines"` // of the whole diff
	Refusal    *refusal       `json:"refusal"`   // of an attempt to apply it now; null: it would be applied
	Problems   any            `json:"problems"`  // the warnings that it would bring
	// Conflicts are the first fields that keep it from being merged.
	Conflicts       []conflictAnswer `json:"conflicts"`
	ConflictCount   int              `json:"conflictCount"` // of all
	Approvals       []approvalAnswer `json:"approvals"`     // of its last commit
	ApprovalsNeeded int              `json:"approvalsNeeded"`
	Own             bool             `json:"own"` // the caller's key has written to it
}

// A refusal is an error as the envelope of a failed call has it.
type refusal struct {
	Code    catalog.Code    `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// A commitAnswer is a commit of a proposal.
type commitAnswer struct {
	Commit    string `json:"commit"`
	Author    string `json:"author"`
	CreatedAt string `json:"createdAt"`
	Message   string `json:"message"`
}

// The bounds of the diff in the answer to a GET.
const (
	maxDiffLines = 4000
	maxDiffBytes = 512 << 10
)

// beginningOf cuts a diff after its last whole line within the bounds. lines is the number of all lines.
func beginningOf(diff string) (cut string, lines int) {
	end := len(diff)
	at := 0
	for line := range strings.Lines(diff) {
		if at += len(line); end == len(diff) && (lines == maxDiffLines || at > maxDiffBytes) {
			end = at - len(line)
		}
		lines++
	}
	return diff[:end], lines
}

// get answers GET /api/platform/proposals/{name}.
func (s *Proposals) get(r *web.Request) error {
	name, ctx, cancel, err := s.onProposal(r, catalog.MayRead)
	if err != nil {
		return err
	}
	defer cancel()
	l, err := s.Set.Look(ctx, r.Key.ID, r.Key.TextID(), name, seenBy(r.Key, noProposal(name)), s.limitsToShow(r.Key))
	if err != nil {
		return err
	}
	a := lookAnswer{proposalAnswer: s.answerOf(l.Proposal), Plan: s.planOf(l.Proposal, r.Key),
		Commits: []commitAnswer{}, AllCommits: l.AllCommits, Problems: append(hclfile.Diagnostics{}, l.Brings...)}
	a.Diff, a.DiffLines = beginningOf(l.Weight().Diff(web.CoverageOf(r.Key)))
	for _, c := range l.Commits {
		a.Commits = append(a.Commits, commitAnswer{c.ID, c.Author, catalog.Moment(c.Created), c.Message})
	}
	a.Conflicts, a.ConflictCount = conflictsOf(l.Conflicts), l.ConflictCount
	a.Approvals, a.ApprovalsNeeded = s.approvalsOf(l.Proposal), s.Set.Needs
	a.Own = writer(r.Key).Wrote(l.Keys)
	if l.Refused == nil {
		l.Refused = s.approved(l.Proposal)
	}
	if l.Refused != nil {
		e, is := errors.AsType[*catalog.Error](l.Refused)
		if !is {
			return l.Refused
		}
		a.Refusal = &refusal{Code: e.Code, Message: e.Message}
		if len(e.Problems) > 0 {
			a.Refusal.Details = web.AppendProblems(nil, e.Problems)
		}
	}
	return r.SucceedJSON("proposal found", a)
}

// onProposal checks what calls on one proposal have in common. The key needs one of the permissions.
func (s *Proposals) onProposal(r *web.Request, may catalog.Permission) (name string, ctx context.Context, cancel func(),
	err error) {
	name, _ = r.Ctx.UserValue("name").(string)
	if !catalog.ValidProposalName(name) {
		return "", nil, nil, web.InvalidField("name", "must "+catalog.ProposalNameRule)
	}
	if r.Dry {
		return "", nil, nil, web.InvalidField(web.DryRunParam,
			"is not for this call: the proposal's plan shows what it changes")
	}
	if r.Key = r.Key.For(may); r.Key.Allow&may == 0 {
		return "", nil, nil, web.RefuseAllow(may)
	}
	if s.Set == nil {
		return "", nil, nil, refuseNoGit
	}
	ctx, cancel = context.WithTimeout(context.Background(), proposeTime)
	return name, ctx, cancel, nil
}
