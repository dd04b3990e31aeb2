package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/rowjson"
)

// explainFiles adds to an answer from the files where the project's values come from.
func explainFiles(checked *offline.Checked, answer func(string) (resolution, error)) func(string) (resolution,
	error) {
	return func(domain string) (resolution, error) {
		r, err := answer(domain)
		if x := checked.Explain(r.Project); err == nil && x != nil {
			r.Explain = rowjson.AppendExplained(nil, x)
		}
		return r, err
	}
}

// explainServer adds to a server's answer where the project's values come from.
func explainServer(ctx context.Context, c *client.Client, answer func(string) (resolution,
	error)) func(string) (resolution, error) {
	return func(domain string) (resolution, error) {
		r, err := answer(domain)
		if err != nil || !r.Found {
			return r, err
		}
		r.Explain, err = c.Explain(ctx, r.id)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && client.Status(err, http.StatusForbidden):
			return r, fmt.Errorf("--explain needs a key with read: %w", err)
		case errors.Is(err, client.ErrUnexplained):
			return r, cli.No("%s does not tell where values come from: without --url, --explain answers from the files", c.URL())
		case err != nil:
			return r, err
		}
		x, err := client.ReadExplained(r.Explain)
		if err != nil {
			return r, err
		}
		for i, from := range x.Domains {
			if x.Config.Domains[i].Name == r.Matched {
				r.File, r.Line = client.Printable(from["domain"].File), from["domain"].Line
			}
		}
		return r, nil
	}
}

// writeExplained writes the rows of an explanation, aligned.
func writeExplained(w io.Writer, document json.RawMessage, matched string) error {
	rows, err := client.ExplainedRows(document, matched)
	if err != nil {
		return err
	}
	var name, value int
	for _, r := range rows {
		name, value = max(name, len(r.Name)), max(value, utf8.RuneCountInString(r.Value))
	}
	for _, r := range rows {
		gap := strings.Repeat(" ", value-utf8.RuneCountInString(r.Value))
		line := fmt.Sprintf("    %-*s  %s%s  %s", name, r.Name, r.Value, gap, r.Origin)
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
