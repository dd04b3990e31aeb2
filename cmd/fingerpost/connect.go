package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
)

// connectFlags say which server to call, and how.
type connectFlags struct {
	url, key, caCert string
	timeout          time.Duration
}

func (f *connectFlags) add(cmd *cobra.Command, keyMay string) {
	fl := cmd.Flags()
	fl.StringVar(&f.url, "url", "", "address of the server, such as https://config.example or http://127.0.0.1:8080")
	fl.StringVar(&f.key, "key", "",
		"key that may "+keyMay+"; better given as FINGERPOST_KEY, which process lists do not show")
	fl.StringVar(&f.caCert, "ca-cert", "", "file of a private CA (PEM) that the server's certificate may come from")
	fl.DurationVar(&f.timeout, "timeout", requestTimeout, "time that one request may take")
}

// local makes a server on this machine the default.
func (f *connectFlags) local(cmd *cobra.Command) {
	f.url = "http://127.0.0.1:8080"
	cmd.Flags().Lookup("url").DefValue = f.url
}

// requestTimeout is time that one request may take unless --timeout says otherwise.
const requestTimeout = 30 * time.Second

// options checks the flags.
func (f *connectFlags) options() (o client.Options, err error) {
	if f.key == "" {
		return o, usage("a key is missing: set FINGERPOST_KEY, or give --key")
	}
	if strings.ContainsAny(f.key, " \t\r\n") {
		return o, usage("--key holds blanks or line ends: is it the key alone?")
	}
	if f.timeout <= 0 {
		return o, usage("--timeout must be more than 0")
	}
	o = client.Options{Key: f.key, Timeout: f.timeout}
	if o.URL, err = client.CleanURL(f.url); err != nil {
		return o, usage("--url %v", err)
	}
	if f.caCert != "" {
		o.TLS, err = client.Trusting(f.caCert)
		if errors.Is(err, client.ErrNoCertificate) {
			err = no("--ca-cert: %v", err)
		}
	}
	return o, err
}

// remoteFlags are the flags of the commands that read or write everything that a server has.
type remoteFlags struct {
	connectFlags
	mailURL, mailKey string
	noMail           bool
	parallel         int
}

func (f *remoteFlags) add(cmd *cobra.Command, keyMay string) {
	f.connectFlags.add(cmd, keyMay)
	f.addMail(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.noMail, "no-mail", false, "leave SMTP configs and templates out")
	fl.IntVar(&f.parallel, "parallel", 8, "number of projects that are dealt with at once")
}

func (f *remoteFlags) addMail(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.mailURL, "mail-url", "", "address of the mail service, where it differs from --url")
	fl.StringVar(&f.mailKey, "mail-key", "",
		"service token of the mail service, where it differs from --key; better given as FINGERPOST_MAIL_KEY")
}

// connect makes the client for the flags.
func (f *remoteFlags) connect() (*client.Client, error) {
	if f.parallel < 1 || f.parallel > client.MaxParallel {
		return nil, usage("--parallel must be from 1 to %d", client.MaxParallel)
	}
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	o.MailKey, o.NoMail = f.mailKey, f.noMail
	if f.mailURL != "" && !f.noMail {
		if o.MailURL, err = client.CleanURL(f.mailURL); err != nil {
			return nil, usage("--mail-url %v", err)
		}
	}
	return client.New(o), nil
}

// interruptible ends the context of a command with Ctrl-C or SIGTERM; a second signal ends the process.
func interruptible(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
}

// passing reports whether a retry may help: the server is unreachable, or reports that it is not ready.
func passing(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	}
	var exit *exitError
	return !errors.As(err, &exit)
}
