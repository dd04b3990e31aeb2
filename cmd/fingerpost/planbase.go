package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
)

// planBase compares the files with a revision of them, and checks them as a server would that runs on that revision.
func planBase(ctx context.Context, t cli.Terminal, dir string, f planFlags) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("open config folder %s: %w", dir, errors.Unwrap(err))
	}
	tmp, err := os.MkdirTemp("", "fingerpost-base-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	commit, err := plumbing.Extract(ctx, dir, f.base, tmp)
	if errors.Is(err, plumbing.ErrRevision) {
		return cli.Usage("--base: %v", err)
	} else if err != nil {
		return err
	}
	allow, err := f.allows.Parse()
	if err != nil {
		return err
	}
	was, err := offline.Check(tmp)
	if err != nil {
		return err
	}
	against := fmt.Sprintf("%s (%.12s)", f.base, commit)
	p := planned{transfer.NewDocument(against)}
	checked, err := checkTree(t, dir, was.AsKnown(), allow, f.asJSON, &p, &p.Diagnostics)
	if err != nil {
		return err
	}
	p.Document = transfer.PlanFiles(was.Declarations(), checked.Declarations(), nil)
	p.Against = against
	if broken := brokenFiles(was.Problems, tmp); len(broken) > 0 {
		p.NotCompared = append(p.NotCompared, fmt.Sprintf("files that have errors in %s: %s", f.base, strings.Join(broken,
			", ")))
	}
	return p.print(t, f)
}

// brokenFiles lists the files with errors, relative to the folder.
func brokenFiles(problems hclfile.Diagnostics, dir string) (names []string) {
	seen := map[string]bool{}
	for _, d := range problems {
		name := strings.TrimPrefix(strings.TrimPrefix(d.File, dir), string(os.PathSeparator))
		if d.Severity == hclfile.Error && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
