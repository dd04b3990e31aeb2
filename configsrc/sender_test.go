package configsrc_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
)

// TestCheckSenders: projects that count on a relay, or on a sender, that is not there are warned of, and no others.
func TestCheckSenders(t *testing.T) {
	const (
		off    = "project \"off\" {\n  name = \"x\"\n  smtp_config { active = false }\n}\n"
		sender = "project \"sender\" {\n  name = \"x\"\n\n  smtp_config { from_email = \"a@b.example\" }\n}\n"
		named  = "project \"named\" {\n  name = \"x\"\n  smtp_config { from_name = \"B\" }\n}\n"
		mails  = "project \"mails\" {\n  name = \"x\"\n  service_settings { mail_enabled = true }\n}\n"
		silent = "project \"silent\" { name = \"x\" }\n"
		own    = "project \"own\" {\n  name = \"x\"\n  smtp_config {\n    host = \"own.example\"\n    from_email = \"a@b.example\"\n  }\n}\n"
	)
	f := func(defaults string, want ...string) {
		t.Helper()
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.hcl"), off+sender+named+mails+silent+own)
		write(t, filepath.Join(dir, "z.hcl"), defaults)
		checked, err := offline.Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range checked.Problems {
			got = append(got, fmt.Sprintf("%s:%d: %s", filepath.Base(d.File), d.Start.Line, d.Summary))
			if d.Severity != hclfile.Warning || d.Detail == "" {
				t.Errorf("%+v", d)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", defaults, got, want)
		}
	}
	const noHost, noSender = " cannot send mail: its smtp_config has no host, and the defaults block has no smtp_config",
		" cannot send mail: neither it nor the smtp_config of the defaults block has a from_email"
	f("# none\n", `a.hcl:8: project "sender"`+noHost, `a.hcl:12: project "named"`+noHost)
	f("defaults {}\n", `a.hcl:8: project "sender"`+noHost, `a.hcl:12: project "named"`+noHost)
	f("defaults {\n  smtp_config { host = \"relay.example\" }\n}\n", `a.hcl:12: project "named"`+noSender, `a.hcl:14: project "mails"`+noSender)
	f("defaults {\n  smtp_config {\n    host = \"relay.example\"\n    from_email = \"a@relay.example\"\n  }\n}\n")
	f("defaults {\n  service_settings { mail_enabled = true }\n  smtp_config { host = \"relay.example\" }\n}\n",
		`a.hcl:12: project "named"`+noSender, `a.hcl:14: project "mails"`+noSender, `a.hcl:18: project "silent"`+noSender)
}
