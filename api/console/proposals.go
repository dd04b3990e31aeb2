package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/api/transfer"
	"fingerpost/resolver/catalog"
)

// A proposalsView is a page of the list of open proposals.
type proposalsView struct {
	Rows                []proposalRow
	All, Page, Pages    int
	Link                string
	Refused             *failure
	WorkedIn            string // the proposal that the person works in, or ""
	MayPropose, Enabled bool
}

// A proposalRow is a proposal of the list.
type proposalRow struct {
	client.Proposal
	Page string // "": a person has given the branch a name that the API does not take
}

// proposals lists the open proposals that the key may see, those that were written to last first.
func (c *Console) proposals(w http.ResponseWriter, r *http.Request, s *session) error {
	v := proposalsView{Enabled: c.o.Git, MayPropose: c.may(s).Propose, WorkedIn: s.Proposal(), Link: pages("proposals"),
		Page: number(r.URL.Query().Get("page"), 1)}
	if c.o.Git {
		list, err := c.api(s).Proposals(r.Context())
		if err != nil {
			v.Refused = failureOf(err)
		}
		slices.SortFunc(list, func(a, b client.Proposal) int {
			return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(a.Name, b.Name))
		})
		v.All, v.Pages = len(list), (len(list)+pageRows-1)/pageRows
		v.Page = max(1, min(v.Page, v.Pages))
		for _, p := range list[min(len(list), (v.Page-1)*pageRows):min(len(list), v.Page*pageRows)] {
			row := proposalRow{Proposal: p}
			if catalog.ValidProposalName(p.Name) {
				row.Page = Prefix + "proposals/" + p.Name
			}
			v.Rows = append(v.Rows, row)
		}
	}
	return c.render(w, r, s, http.StatusOK, "proposals", "Proposals", v)
}

// A proposalView is the page of a proposal.
type proposalView struct {
	client.ProposalLook
	Diff               diffView
	PlanText           string
	PlanLines, PlanAll int
	Rows               []conflictRow
	Apply, Drop        bool // the key may
	Update, Approve    bool // the key may, and there is something to it
	Approved           bool // the key has
	Waits              bool // for approvals alone
	Comment            string
	WorkedIn           bool
	Sure               bool     // the person is asked whether it is to be dropped
	Failed             *failure // why what the person wanted was not done
}

// maxShown is how many lines of a proposal's diff, and of its plan, its page shows.
const maxShown = 400

var noProposalPage = &failure{Status: http.StatusNotFound, Message: "There is no such proposal. It may have been applied, " +
	"dropped or merged, or it touches more than your key may see."}

// showProposal shows a proposal. failed is why what the person wanted was not done, or nil.
func (c *Console) showProposal(w http.ResponseWriter, r *http.Request, s *session, failed *failure) error {
	name := r.PathValue("name")
	if !catalog.ValidProposalName(name) {
		return noProposalPage
	}
	p, err := c.api(s).Proposal(r.Context(), name)
	if client.Status(err, http.StatusNotFound) {
		return noProposalPage
	}
	if err != nil {
		return err
	}
	may := c.may(s)
	v := proposalView{ProposalLook: p, Failed: failed, Apply: may.Save, WorkedIn: s.Proposal() == name,
		Drop: may.Save || may.Edit && say.Text(p.Key) == s.Key().Name}
	v.Rows = conflictRows(p.Conflicts)
	v.Update = may.Edit && len(p.Conflicts) > 0
	v.Approved = slices.ContainsFunc(p.Approvals, func(a client.Approval) bool { return a.Key == s.Key().Name })
	v.Approve = may.Save && !p.Own && !v.Approved && p.Mergeable
	v.Waits = p.Refusal != nil && p.Refusal.Code == string(catalog.CodeApprovalNeeded)
	if failed != nil {
		v.Comment = r.PostFormValue("comment")
	}
	v.Sure = v.Drop && r.FormValue("drop") != ""
	v.Diff.Lines, _ = say.DiffLines(p.Diff, maxShown)
	v.Diff.All = p.DiffLines
	v.PlanText, v.PlanLines, v.PlanAll = planOf(p.Plan)
	status := http.StatusOK
	if failed != nil {
		status = failed.Status
	}
	return c.render(w, r, s, status, "proposal", p.Title, v)
}

// planOf returns the beginning of a plan as "fingerpost plan" prints it, how many lines that is, and how many there are.
func planOf(plan json.RawMessage) (text string, shown, all int) {
	var read struct{ Changes []transfer.Change }
	var b strings.Builder
	if json.Unmarshal(plan, &read) != nil || transfer.WriteChanges(&b, read.Changes, false) != nil {
		return "", 0, 0
	}
	var begin strings.Builder
	for line := range strings.Lines(b.String()) {
		if all++; all <= maxShown {
			begin.WriteString(line)
			shown++
		}
	}
	return begin.String(), shown, all
}

// proposal applies a proposal, drops it, or has the person work in it.
func (c *Console) proposal(w http.ResponseWriter, r *http.Request, s *session) error {
	name, seen := r.PathValue("name"), r.PostFormValue("commit")
	if !catalog.ValidProposalName(name) {
		return noProposalPage
	}
	var err error
	done, to, here := "", Prefix+"proposals", Prefix+"proposals/"+name
	switch r.PostFormValue("do") {
	case "leave":
		s.workIn("")
		done = "You have left the proposal. What is shown is live."
	case "enter":
		if _, err = c.api(s).Proposal(r.Context(), name); err == nil {
			s.workIn(name)
			return seeOther(w, r, Prefix+"projects")
		}
	case "drop":
		done = "The proposal " + name + " was dropped."
		err = c.api(s).DropProposal(r.Context(), name, seen)
	case "update":
		done, to = "The proposal has its values on what is live now. Read it again before it is applied.", here
		_, err = c.api(s).UpdateProposal(r.Context(), name, seen)
	case "approve":
		done, to = "You have approved of the proposal as it is.", here
		_, _, err = c.api(s).ApproveProposal(r.Context(), name, seen)
	case "apply":
		done, to = "The proposal "+name+" is applied, and live.", Prefix+"changes"
		_, err = c.api(s).ApplyProposal(r.Context(), name, seen, r.PostFormValue("comment"))
	default:
		err = &failure{Status: http.StatusBadRequest, Message: "The form does not say what to do."}
	}
	switch fail := failureOf(err); {
	case err == nil:
	case fail.Status == http.StatusNotFound:
		return noProposalPage
	case fail.Status == http.StatusPreconditionFailed:
		return c.showProposal(w, r, s, &failure{Status: fail.Status, Message: "The proposal has changed since you looked. " +
			"Nothing was done: below is what it is now."})
	default:
		return c.showProposal(w, r, s, fail)
	}
	if s.Proposal() == name && to != here {
		s.workIn("")
	}
	s.say(done)
	return seeOther(w, r, to)
}

// leaveGone leaves the proposal that the person works in, if a page has failed because that has gone, and tells so.
func (c *Console) leaveGone(r *http.Request, s *session, err error) bool {
	name := s.Proposal()
	if name == "" || failureOf(err).Status != http.StatusNotFound {
		return false
	}
	if _, err := c.api(s).Proposal(r.Context(), name); !client.Status(err, http.StatusNotFound) {
		return false
	}
	s.workIn("")
	s.say("The proposal " + name + " is gone: it was applied, dropped or merged. What is shown is live.")
	return true
}
