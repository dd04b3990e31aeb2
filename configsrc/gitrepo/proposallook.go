package gitrepo

import (
	"context"
	"slices"
	"strings"
	"time"
)

// MaxProposalCommits is how many commits of a proposal a Look has.
const MaxProposalCommits = 100

// maxCommitText is how much of a commit's message is shown, in bytes.
const maxCommitText = 4 << 10

// A ProposalCommit is a commit of a proposal's branch.
type ProposalCommit struct {
	ID      string
	Author  string // Name <address>
	Created time.Time
	Message string // without the trailers of this package, and not more than 4 KiB of it
}

// Look calls see with a proposal and its commits, the first one first. Of many they are the latest MaxProposalCommits,
// and all is false. check decides whether the caller may see it.
func (r *Repo) Look(ctx context.Context, name string, check func(p *Proposal) error,
	see func(p *Proposal, commits []ProposalCommit, all bool) error) error {
	_, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	if err != nil {
		return err
	}
	var commits []ProposalCommit
	next := p.Commit
	for next != "" && next != p.base && len(commits) < MaxProposalCommits {
		c, err := r.git.Commit(next)
		if err != nil {
			if len(commits) > 0 { // a shallow clone lacks it
				break
			}
			return err
		}
		author, address, at := person(c.Author)
		commits = append(commits, ProposalCommit{ID: next, Author: nameOnly(author) + " <" + nameOnly(address) + ">",
			Created: at, Message: withoutTrailers(c.Message)})
		if next = ""; len(c.Parents) > 0 && c.ID != p.own { // HEAD's commits come before its own first one
			next = c.Parents[0]
		}
	}
	slices.Reverse(commits)
	return see(p, commits, next == "" || next == p.base)
}

// firstLine returns what a commit's message begins with, as one line.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return oneLine(line, 2*maxSubject)
}

// withoutTrailers returns what a commit's message says to people.
func withoutTrailers(message string) string {
	text := strings.TrimSpace(message)
	at := strings.LastIndex(text, "\n\n")
	if last := text[at+1:]; at >= 0 && !slices.ContainsFunc(strings.Split(strings.TrimSpace(last), "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "Fingerpost-") }) {
		text = strings.TrimSpace(text[:at])
	}
	if len(text) > maxCommitText {
		text = text[:maxCommitText] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
