package table_test

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"fingerpost/api/transfer/table"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// FuzzRead: every table is read; a project without a problem can be written to a file; and a table that is written from
// the projects reads as the same projects.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"slug,name,domain,primary,description,status,plan\nacme,Acme,shop.acme.example,yes,\"two\nlines\",ACTIVE,gold\nacme,,*.acme.example,,,,\n",
		"\ufeffslug;domain\r\na;bücher.example\r\n\r\nb;X.EXAMPLE.\r\n", "slug\tname\na\t\"x\"\"y\"\n", "slug,name\na,\"open\n", ",\n,", "slug,description\na,\x00${x}%{\n",
		"slug,\"o\n s\"\na,\xff\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := table.Read(bytes.NewReader(text), table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		line := 0
		for _, p := range got.Problems {
			if p.Line < max(1, line) || p.Message == "" || strings.ContainsAny(p.String(), "\n\x1b") {
				t.Errorf("problem %+v after line %d", p, line)
			}
			line = p.Line
		}
		var good []*table.Project
		for _, p := range got.Projects {
			if !p.Bad {
				good = append(good, p)
			}
		}
		for _, p := range good {
			declare(t, p)
		}
		again, err := table.Read(strings.NewReader(write(t, got.Labels, good)), table.Options{})
		if err != nil || len(again.Problems) > 0 || describe(again.Projects) != describe(good) {
			t.Errorf("written and read again: %v %v\n%s, was\n%s", err, again.Problems, describe(again.Projects), describe(good))
		}
	})
}

// declare makes the project's file, which is decoded and compared there.
func declare(t *testing.T, p *table.Project) {
	t.Helper()
	c := catalog.ProjectConfig{Project: p.Project, Domains: p.Domains, Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
	c.Project.UUID = catalog.DeriveProjectUUID(p.Project.Slug)
	c.Project.ID = catalog.DeriveID(catalog.KindProject, c.Project.UUID)
	for i := range c.Domains {
		d := &c.Domains[i]
		d.UUID = catalog.DeriveDomainUUID(c.Project.UUID, d.Name)
		d.ID = catalog.DeriveID(catalog.KindDomain, d.UUID)
	}
	if _, err := hcledit.WriteProject(&c, nil); err != nil {
		t.Errorf("no file declares %s: %v", describe([]*table.Project{p}), err)
	}
}

// write makes a table of projects.
func write(t *testing.T, labels []string, projects []*table.Project) string {
	t.Helper()
	var b strings.Builder
	w := csv.NewWriter(&b)
	rows := [][]string{append([]string{"slug", "name", "domain", "primary", "description", "status"}, labels...)}
	for _, p := range projects {
		row := []string{p.Project.Slug, p.Project.Name, "", "", "", p.Project.Status}
		if p.Project.Description != nil {
			row[4] = *p.Project.Description
		}
		for _, name := range labels {
			value := ""
			for _, l := range p.Project.Labels {
				if l.Name == name {
					value = l.Value
				}
			}
			row = append(row, value)
		}
		rows = append(rows, row)
		for _, d := range p.Domains {
			next := make([]string, len(row))
			next[0], next[2], next[3] = p.Project.Slug, d.Name, strconv.FormatBool(d.Primary)
			rows = append(rows, next)
		}
	}
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
