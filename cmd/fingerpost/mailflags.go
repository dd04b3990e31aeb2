package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/mailer"
)

// mailFlags are the flags of serve that concern mail.
type mailFlags struct {
	smtpAllow []string
	budget    time.Duration
	keepText  string
	queue     int
	perQueue  int

	allow []netip.Prefix // smtpAllow
	keep  time.Duration  // keepText
}

func (f *mailFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.smtpAllow, "smtp-allow", nil,
		"networks (CIDR,…) in which SMTP servers may be reached although they are private or loopback, such as 10.0.0.0/8")
	fl.DurationVar(&f.budget, "mail-budget", mailer.DefaultBudget,
		"time that a send waits for the SMTP server before it is answered 202 and goes on by itself")
	fl.IntVar(&f.queue, "mail-queue", mailer.DefaultQueue,
		"number of mails that may wait, over all projects; sends beyond it are answered 429")
	fl.IntVar(&f.perQueue, "mail-queue-per-project", mailer.DefaultQueuePerProject,
		"number of mails of one project that may wait")
	fl.StringVar(&f.keepText, "mail-retention", "90d", "time that entries of the mail log are kept")
}

// maxBudget keeps a send's answer within the time that clients and proxies wait for it.
const maxBudget = 5 * time.Minute

// parse parses the flags that are not plain, and reports all their problems.
func (f *mailFlags) parse() error {
	var bad []string
	f.allow, bad = parseNetworks("--smtp-allow", f.smtpAllow)
	if f.budget <= 0 || f.budget > maxBudget {
		bad = append(bad, fmt.Sprintf("--mail-budget must be more than 0 and at most %s", maxBudget))
	}
	if f.queue <= 0 {
		bad = append(bad, "--mail-queue must be 1 or more")
	}
	if f.perQueue <= 0 {
		bad = append(bad, "--mail-queue-per-project must be 1 or more")
	}
	var err error
	switch f.keep, err = parseLifetime(f.keepText); {
	case err != nil:
		bad = append(bad, fmt.Sprintf("--mail-retention: %v", err))
	case f.keep < 24*time.Hour:
		bad = append(bad, "--mail-retention must be a day or more: idempotency keys and retries live as long")
	}
	return usageAll(bad)
}

// parseNetworks parses the networks of a flag, and reports the problem of each.
func parseNetworks(flag string, texts []string) (networks []netip.Prefix, bad []string) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err == nil && network == network.Masked() {
			networks = append(networks, network)
			continue
		}
		problem := "is no network in CIDR form such as 10.0.0.0/8 or fd00::/8"
		if err == nil {
			problem = fmt.Sprintf("has bits beyond its length: did you mean %s?", network.Masked())
		} else if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Zone() == "" {
			problem = fmt.Sprintf("is an address: did you mean %s/%d?", a, a.BitLen())
		}
		bad = append(bad, fmt.Sprintf("%s: %q %s", flag, text, problem))
	}
	return networks, bad
}
