package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/mailer"
	"fingerpost/resolver/hostname"
)

func (f *serveFlags) addMail(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.smtpAllow, "smtp-allow", nil,
		"networks (CIDR,…) in which SMTP servers may be reached although they are private or loopback, such as 10.0.0.0/8")
	fl.DurationVar(&f.Mail.Budget, "mail-budget", mailer.DefaultBudget,
		"time that a send waits for the SMTP server before it is answered 202 and goes on by itself")
	fl.StringVar(&f.Mail.EHLOName, "mail-ehlo", "",
		"host name to greet SMTP servers with, where smtp_config has no ehlo_name; the default is this machine's full name")
	fl.IntVar(&f.Mail.Queue, "mail-queue", mailer.DefaultQueue,
		"number of mails that may wait, over all projects; sends beyond it are answered 429")
	fl.IntVar(&f.Mail.QueuePerProject, "mail-queue-per-project", mailer.DefaultQueuePerProject,
		"number of mails of one project that may wait")
	fl.StringVar(&f.mailRetention, "mail-retention", "90d", "time that entries of the mail log are kept")
	fl.StringVar(&f.mailSink, "mail-sink", "false", "keep every mail instead of sending it, to be read in the console; "+
		"--mail-sink=public also where other machines reach the service")
	fl.Lookup("mail-sink").NoOptDefVal = "true"
}

// maxBudget keeps a send's answer within the time that clients and proxies wait for it.
const maxBudget = 5 * time.Minute

// parse parses the flags that are not plain, and reports all their problems.
func (f *serveFlags) parseMail() error {
	var bad []string
	f.Mail.Allow, bad = cli.ParseNetworks("--smtp-allow", f.smtpAllow)
	if f.Mail.EHLOName != "" {
		if _, err := hostname.Parse(f.Mail.EHLOName); err != nil {
			bad = append(bad, fmt.Sprintf("--mail-ehlo must be a host name such as mail.acme.example: %v", err))
		}
	}
	if f.Mail.Budget <= 0 || f.Mail.Budget > maxBudget {
		bad = append(bad, fmt.Sprintf("--mail-budget must be more than 0 and at most %s", maxBudget))
	}
	if f.Mail.Queue <= 0 {
		bad = append(bad, "--mail-queue must be 1 or more")
	}
	if f.Mail.QueuePerProject <= 0 {
		bad = append(bad, "--mail-queue-per-project must be 1 or more")
	}
	var err error
	switch f.Mail.Retention, err = cli.ParseLifetime(f.mailRetention); {
	case err != nil:
		bad = append(bad, fmt.Sprintf("--mail-retention: %v", err))
	case f.Mail.Retention < 24*time.Hour:
		bad = append(bad, "--mail-retention must be a day or more: idempotency keys and retries live as long")
	}
	return cli.UsageAll(append(bad, f.parseMailSink()...))
}

// parseMailSink parses --mail-sink. Other machines that reach the service may be in use by people who wait for their
// mail, so the flag has to say that it means them, too.
func (f *serveFlags) parseMailSink() (bad []string) {
	const public = "public"
	var err error
	if f.mailSink == public {
		f.Mail.Keep = true
	} else if f.Mail.Keep, err = strconv.ParseBool(f.mailSink); err != nil {
		return []string{fmt.Sprintf("--mail-sink=%s: it takes true, false, or public", f.mailSink)}
	}
	if reached := f.MailReached(); f.Mail.Keep && f.mailSink != public && reached != "" {
		bad = append(bad, fmt.Sprintf("--mail-sink keeps every mail and sends none, and other machines can reach %s: "+
			"give --mail-sink=public if it is meant for them, too, or listen on 127.0.0.1", reached))
	}
	return bad
}
