package gitrepo

import (
	"context"
	"slices"
	"strings"

	"fingerpost/configsrc/gitrepo/plumbing"
)

// leavesSteps bounds the commits that leaves reads itself.
const leavesSteps = 200

// leaves returns the commit at which a proposal's branch has left HEAD's, "" for none, and the branch's first own
// commit, "" for none. It walks back from both, as far as each commit has one parent, which is nearly always all the
// way: git costs two processes for each proposal, and again for each commit of HEAD.
func (r *Repo) leaves(ctx context.Context, name, head, tip string) (base, own string, err error) {
	if head == "" {
		return "", "", nil
	}
	former, err := r.git.Ref(formerRef(name))
	if err != nil {
		return "", "", err
	}
	var lines [2][]string // from HEAD, from the tip
	next := [2]string{head, tip}
	updated := "" // the commit of HEAD's to which the branch was brought up to date last
	for range leavesSteps {
		for i := range lines {
			if next[i] == "" {
				continue
			}
			lines[i] = append(lines[i], next[i])
			c, err := r.git.Commit(next[i])
			next[i] = ""
			switch { // a shallow clone lacks the last one
			case err == nil && len(c.Parents) == 1:
				next[i] = c.Parents[0]
			case err == nil && len(c.Parents) == 2 && i == 1:
				updated = c.Parents[1]
			}
		}
		if updated != "" && (updated == former || slices.Contains(lines[0], updated)) {
			own, err = r.firstOwn(ctx, updated, tip)
			return updated, own, err
		}
		// The newest commit of one line that the other one has, too.
		for i, id := range lines[1] {
			if id != former && !slices.Contains(lines[0], id) {
				continue
			}
			if i > 0 {
				own = lines[1][i-1]
			}
			return id, own, nil
		}
		if next == [2]string{} {
			break
		}
	}
	if base, err = r.git.Run(ctx, "merge-base", head, tip); err != nil {
		if plumbing.ExitCode(err) == 1 {
			err = nil
		}
		return "", "", err
	}
	own, err = r.firstOwn(ctx, base, tip)
	return base, own, err
}

// firstOwn returns the first commit of a branch that base does not have.
func (r *Repo) firstOwn(ctx context.Context, base, tip string) (string, error) {
	out, err := r.git.Run(ctx, "rev-list", "--reverse", "--first-parent", base+".."+tip)
	ids := strings.Fields(out)
	if len(ids) == 0 {
		return "", err
	}
	return ids[0], err
}
