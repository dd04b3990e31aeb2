package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

func newResolve(t cli.Terminal) *cobra.Command {
	var f cli.ConnectFlags
	asJSON, explain := false, false
	cmd := &cobra.Command{
		Use:   "resolve DOMAIN…",
		Short: "Tell which project a domain belongs to, and why",
		Long: "Without --url, answers from the files alone and says which file and line matched. With --url, asks a " +
			"running server.\n" +
			"With --explain, also prints each value of the project as it is in force, and where it comes from: file and " +
			"line, the\n" +
			"defaults block, or built-in. With --url, that needs a key with read.\n" +
			"Exit code 1 when a domain does not resolve.",
		Args:              cli.WantsSome("DOMAIN"),
		ValidArgsFunction: cli.CompleteArgs(domainNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.URL == "" {
				checked, err := offline.Check(cli.ConfigDir(cmd))
				if err != nil {
					return err
				}
				answer := fromFiles(checked)
				if explain {
					answer = explainFiles(checked, answer)
				}
				return resolve(t, args, answer, asJSON)
			}
			o, err := f.Options()
			if err != nil {
				return err
			}
			c := client.New(o)
			answer := fromServer(cmd.Context(), c)
			if explain {
				answer = explainServer(cmd.Context(), c, answer)
			}
			return resolve(t, args, answer, asJSON)
		},
	}
	f.Add(cmd, "resolve")
	cmd.Flags().BoolVar(&explain, "explain", false, "show each value of the project, and where it comes from")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// domainNames leaves wildcards out: no client asks for one.
func domainNames(checked *offline.Checked) (names []string) {
	for _, p := range checked.Projects() {
		for _, d := range p.Domains {
			if !d.Wildcard() {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

// A resolution is the answer for one domain.
type resolution struct {
	Domain  string          `json:"domain"`
	Found   bool            `json:"found"`
	Code    catalog.Code    `json:"code,omitempty"`
	Project string          `json:"project,omitempty"`
	Matched string          `json:"matchedDomain,omitempty"`
	File    string          `json:"file,omitempty"`
	Line    int             `json:"line,omitempty"`
	Why     string          `json:"why"`
	Data    json.RawMessage `json:"data,omitempty"`    // from a server
	Explain json.RawMessage `json:"explain,omitempty"` // with --explain; as view=full answers

	id int64 // of the project, from a server
}

func resolve(t cli.Terminal, domains []string, answer func(string) (resolution, error), asJSON bool) error {
	results := make([]resolution, 0, len(domains))
	all := true
	for _, d := range domains {
		r, err := answer(d)
		if err != nil {
			return err
		}
		all = all && r.Found
		results = append(results, r)
	}
	if asJSON {
		if err := cli.PrintJSON(t.Out, results); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			result, where := r.Project, ""
			if !r.Found {
				result = string(r.Code)
			}
			if r.File != "" {
				where = fmt.Sprintf("%s:%d: ", r.File, r.Line)
			}
			fmt.Fprintf(t.Out, "%s → %s\n  %s%s\n", r.Domain, result, where, r.Why)
			if r.Explain == nil {
				continue
			}
			if err := writeExplained(t.Out, r.Explain, r.Matched); err != nil {
				return err
			}
		}
	}
	if !all {
		return cli.ErrNot
	}
	return nil
}

// fromFiles answers from the files.
func fromFiles(checked *offline.Checked) func(string) (resolution, error) {
	type place struct {
		file    *offline.File
		project *catalog.ProjectConfig
		domain  *catalog.Domain
	}
	places := map[string]place{}
	_, defaults := checked.Defaults()
	for f, p := range checked.Projects() {
		for i := range p.Domains {
			places[p.Domains[i].Name] = place{f, p, &p.Domains[i]}
		}
	}
	return func(domain string) (resolution, error) {
		host, err := hostname.Canonical(domain)
		if err != nil {
			why := "the domain " + err.Error()
			return resolution{Domain: domain, Code: catalog.CodeValidation, Why: why}, nil //nolint:nilerr // an answer
		}
		for _, name := range matchOrder(host) {
			p, ok := places[name]
			if !ok {
				continue
			}
			r := resolution{Domain: domain, Found: true, Project: p.project.Project.Slug, Matched: name, File: p.file.Display,
				Line: p.file.Line(catalog.Ref{Kind: catalog.KindDomain, Name: name, ProjectID: p.project.Project.ID})}
			how := "matches exactly"
			if p.domain.Wildcard() {
				how = "is the wildcard with the longest suffix"
			}
			r.Why = fmt.Sprintf("domain %q of project %q %s", name, r.Project, how)
			switch not := p.domain.NotVerified(defaults); {
			case not != 0:
				r.Found, r.Code, r.Why = false, catalog.CodeDomainNotVerified, r.Why+", but "+not.Why()
			case p.project.Project.Status == catalog.StatusSuspended:
				r.Found, r.Code, r.Why = false, catalog.CodeProjectSuspended, r.Why+", but the project is SUSPENDED"
			}
			return r, nil
		}
		return resolution{Domain: domain, Code: catalog.CodeNotFound, Why: "no file declares it: looked for " +
			strings.Join(matchOrder(host), ", ")}, nil
	}
}

// matchOrder lists the records that may match a host, the most specific one first (api/README.md, Resolve).
func matchOrder(host string) []string {
	names := []string{host}
	for rest := []byte(host); ; {
		suffix, ok := hostname.NextWildcard(rest)
		if !ok {
			return names
		}
		names = append(names, "*."+string(suffix))
		rest = suffix
	}
}

// fromServer asks a running server.
func fromServer(ctx context.Context, c *client.Client) func(string) (resolution, error) {
	return func(domain string) (resolution, error) {
		r := resolution{Domain: domain}
		answer, err := c.Resolve(ctx, domain)
		var refused *client.Error
		// These statuses say something about the domain. All others are failures.
		if errors.As(err, &refused) && client.Status(err, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound) {
			r.Code, r.Why = refused.Code, refused.Message
			return r, nil
		}
		if err != nil {
			return resolution{}, err
		}
		r.Found, r.Project, r.Matched, r.Data, r.id = true, answer.Slug, answer.Matched, answer.Data, answer.ID
		r.Why = fmt.Sprintf("%s matches %q", c.URL(), r.Matched)
		return r, nil
	}
}
