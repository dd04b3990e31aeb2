package logs

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
)

// trailFlags are the flags of the commands that read what has happened, the mail log and the audit trail.
type trailFlags struct {
	projects     []string
	since        string
	ago          time.Duration // since
	limit        int
	follow, json bool
	every        time.Duration
}

// add adds the flags, and makes the address of a local server the default of c. what is what --since selects; all is
// what the command reads without --project.
func (f *trailFlags) add(cmd *cobra.Command, c *cli.ConnectFlags, what, all string) {
	fl := cmd.Flags()
	c.Local(cmd)
	fl.StringSliceVar(&f.projects, "project", nil,
		"slugs of the projects, or the ids of deleted ones (default "+all+" that the key reaches)")
	fl.StringVar(&f.since, "since", "", "time up to now of which "+what+" is listed: 90d, 12h, 30m")
	fl.IntVar(&f.limit, "limit", 50, "number of entries that are printed before --follow goes on")
	fl.BoolVar(&f.follow, "follow", false, "print what comes after that, until the command is ended")
	fl.DurationVar(&f.every, "every", time.Second, "interval between two questions of --follow")
	fl.BoolVar(&f.json, "json", false, "print JSON on stdout")
	cli.CompleteFlag(cmd, "project", (*offline.Checked).Slugs)
}

// maxTrailRows bounds --limit.
const maxTrailRows = 10_000

// check parses the flags that are not plain, and adds their problems to those of the command's own flags. The error
// has all of them.
func (f *trailFlags) check(bad []string) error {
	if f.limit < 0 || f.limit > maxTrailRows {
		bad = append(bad, fmt.Sprintf("--limit must be from 0 to %d", maxTrailRows))
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if f.since != "" {
		var err error
		if f.ago, err = cli.ParseLifetime(f.since); err != nil {
			bad = append(bad, fmt.Sprintf("--since: %v", err))
		}
	}
	if cli.NamesNothing(f.projects) {
		bad = append(bad, "--project must name a project")
	}
	return cli.UsageAll(bad)
}

// from returns the time of --since, zero without it.
func (f *trailFlags) from() time.Time {
	if f.since == "" {
		return time.Time{}
	}
	return time.Now().Add(-f.ago)
}

var digits = regexp.MustCompile(`^[1-9][0-9]{0,15}$`)

// find calls add for each project of --project. The id of a project that is gone is taken as it is.
func (f *trailFlags) find(ctx context.Context, server *client.Client, add func(id int64, slug string)) error {
	var unknown []string
	for _, slug := range f.projects {
		p, err := server.ProjectBySlug(ctx, slug)
		switch {
		case err == nil:
			add(p.ID, slug)
		case !client.Status(err, http.StatusNotFound):
			return err
		case digits.MatchString(slug):
			id, _ := strconv.ParseInt(slug, 10, 64)
			add(id, slug)
		default:
			unknown = append(unknown, strconv.Quote(slug))
		}
	}
	if unknown != nil {
		return cli.No("no such project: %s", strings.Join(unknown, ", "))
	}
	return nil
}

// printing says what is printed.
func (f *trailFlags) printing() tailOptions {
	return tailOptions{limit: f.limit, follow: f.follow, json: f.json, every: f.every}
}
