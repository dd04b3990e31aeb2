package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
)

// TestFlagHelp: the help of every flag stands alone, and serve shows each of its flags in a group.
func TestFlagHelp(t *testing.T) {
	root := newRoot(cli.Terminal{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr})
	alone := regexp.MustCompile(`^(--)?[a-zA-Z/]`)
	leans := regexp.MustCompile(`^(a|an|the|and|also|only|how|when|where|which|what it|with|without|so|its|it) `)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch usage := f.Usage; {
			case !alone.MatchString(usage), leans.MatchString(usage):
				t.Errorf("%s --%s: %q does not begin with a verb or a noun", c.CommandPath(), f.Name, usage)
			case strings.HasSuffix(usage, "."):
				t.Errorf("%s --%s: %q ends in a full stop", c.CommandPath(), f.Name, usage)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)

	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	help := serve.UsageString()
	at := -1
	for _, group := range []string{"Files", "Listen", "Console", "Mail", "Domains", "Git", "Cluster", "Limits", "Logs"} {
		next := strings.Index(help, "\n"+group+":\n")
		if next <= at {
			t.Errorf("the group %s is not in its place in\n%s", group, help)
		}
		at = next
	}
	serve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && strings.Count(help, "--"+f.Name+" ") == 0 {
			t.Errorf("--%s is in no group", f.Name)
		}
	})
}
