package logs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/records"
)

// verifyFlags are the flags of audit verify.
type verifyFlags struct {
	data, head string
	json       bool
}

func newVerify(t cli.Terminal) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chains of the audit trail",
		Long: "Reads the audit trail of a server that does not run, and changes nothing. Each entry has the hash of the " +
			"previous one of\n" +
			"its project: the first link that does not hold is named, and the places at which damage of the disk has cut the " +
			"trail.\nThat somebody has cut off the end of a chain shows only against " +
			"a head\n" +
			"from before, which the server logs once an hour (\"audit head\").\n\n" +
			"Exit codes: 0 all links hold; 1 one does not, or the head is not found; 3 the trail cannot be read.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return auditVerify(t, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.data, "data", ".fingerpost", "folder of the store; the server must not run")
	fl.StringVar(&f.head, "head", "", "hash that was the head of a chain, 64 hexadecimal digits")
	fl.BoolVar(&f.json, "json", false, "print JSON on stdout")
	return cmd
}

// A verdict is what audit verify prints with --json.
type verdict struct {
	Valid   bool    `json:"valid"`
	Chains  int64   `json:"chains"`
	Entries int64   `json:"entries"`
	Head    *bool   `json:"head"` // found; null if none was given
	Broken  *broken `json:"broken"`
	// Gaps are where damage has cut the trail. A link there does not hold, although nobody has changed an entry.
	Gaps []records.AuditGap `json:"gaps"`
}

// describeGap says in words where damage has cut the trail.
func describeGap(g *records.AuditGap) string {
	what := fmt.Sprintf("damage has cut the trail of project %d after entry %d", g.Project, g.After)
	switch {
	case g.Any:
		what = "damage may have cut the trail of any project, since some of the ledger cannot be read"
	case g.Project == 0:
		what = fmt.Sprintf("damage has cut the trail of what belongs to no project after entry %d", g.After)
	}
	return fmt.Sprintf("%s (found %s, %s)", what, g.Found.UTC().Format(time.RFC3339), g.MovedTo)
}

type broken struct {
	Project int64  `json:"projectId"`
	Entry   int64  `json:"entry"`
	Reason  string `json:"reason"`
}

func auditVerify(t cli.Terminal, f verifyFlags) error {
	var head [32]byte
	if b, err := hex.DecodeString(f.head); err != nil || f.head != "" && len(b) != len(head) {
		return cli.Usage("--head must be 64 hexadecimal digits, as the log has them")
	} else {
		copy(head[:], b)
	}
	check, err := datadir.VerifyAudit(f.data, head)
	if pid, held := datadir.HeldBy(err); held {
		return fmt.Errorf("process %d has %s open: stop the server first, or restore a backup into another folder and "+
			"verify that", pid, f.data)
	}
	if err != nil {
		return fmt.Errorf("read the audit trail in %s: %w", f.data, err)
	}
	v := verdict{Valid: check.Broken == nil, Chains: check.Chains, Entries: check.Entries,
		Gaps: append([]records.AuditGap{}, check.Gaps...)} // [] in JSON, not null
	if f.head != "" {
		v.Head = &check.HeadFound
		v.Valid = v.Valid && check.HeadFound
	}
	if b := check.Broken; b != nil {
		v.Broken = &broken{b.Project, b.Entry, b.Reason}
	}
	if f.json {
		err = cli.PrintJSON(t.Out, v)
	} else if v.Valid {
		_, err = fmt.Fprintf(t.Out, "all links hold (entries: %d, chains: %d)\n", v.Entries, v.Chains)
	}
	for i := range v.Gaps {
		if !f.json {
			fmt.Fprintln(t.Out, describeGap(&v.Gaps[i]))
		}
	}
	return errors.Join(err, v.failure())
}

func (v *verdict) failure() error {
	switch {
	case v.Broken != nil && v.Broken.Entry == 0:
		return cli.No("the trail of project %d is broken: %s", v.Broken.Project, v.Broken.Reason)
	case v.Broken != nil:
		return cli.No("the trail of project %d is broken at entry %d: %s", v.Broken.Project, v.Broken.Entry, v.Broken.Reason)
	case !v.Valid:
		return cli.No("no entry has the head's hash: the end of its chain was cut off, or its retention has ended")
	}
	return nil
}
