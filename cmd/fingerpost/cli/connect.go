package cli

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

// ConnectFlags say which server to call, and how.
type ConnectFlags struct {
	URL, key, caCert string
	Timeout          time.Duration
}

// Add adds the flags. keyMay says what the key must be allowed to do, such as "read".
func (f *ConnectFlags) Add(cmd *cobra.Command, keyMay string) {
	fl := cmd.Flags()
	fl.StringVar(&f.URL, "url", "", "address of the server, such as https://config.example or http://127.0.0.1:8080")
	fl.StringVar(&f.key, "key", "",
		"key that may "+keyMay+"; better given as FINGERPOST_KEY, which process lists do not show")
	fl.StringVar(&f.caCert, "ca-cert", "", "file of a private CA (PEM) that the server's certificate may come from")
	fl.DurationVar(&f.Timeout, "timeout", RequestTimeout, "time that one request may take")
}

// Local makes a server on this machine the default.
func (f *ConnectFlags) Local(cmd *cobra.Command) {
	f.URL = "http://127.0.0.1:8080"
	cmd.Flags().Lookup("url").DefValue = f.URL
}

// RequestTimeout is time that one request may take unless --timeout says otherwise.
const RequestTimeout = 30 * time.Second

// Options checks the flags.
func (f *ConnectFlags) Options() (o client.Options, err error) {
	if f.key == "" {
		return o, Usage("a key is missing: set FINGERPOST_KEY, or give --key")
	}
	if strings.ContainsAny(f.key, " \t\r\n") {
		return o, Usage("--key holds blanks or line ends: is it the key alone?")
	}
	if f.Timeout <= 0 {
		return o, Usage("--timeout must be more than 0")
	}
	o = client.Options{Key: f.key, Timeout: f.Timeout}
	if o.URL, err = client.CleanURL(f.URL); err != nil {
		return o, Usage("--url %v", err)
	}
	if f.caCert != "" {
		o.TLS, err = client.Trusting(f.caCert)
		if errors.Is(err, client.ErrNoCertificate) {
			err = No("--ca-cert: %v", err)
		}
	}
	return o, err
}

// RemoteFlags are the flags of the commands that read or write everything that a server has.
type RemoteFlags struct {
	ConnectFlags
	mailURL, mailKey string
	noMail           bool
	Parallel         int
}

// Add adds the flags, see [ConnectFlags.Add].
func (f *RemoteFlags) Add(cmd *cobra.Command, keyMay string) {
	f.ConnectFlags.Add(cmd, keyMay)
	f.AddMail(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.noMail, "no-mail", false, "leave SMTP configs and templates out")
	fl.IntVar(&f.Parallel, "parallel", 8, "number of projects that are dealt with at once")
}

// AddMail adds only the flags of the mail service.
func (f *RemoteFlags) AddMail(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.mailURL, "mail-url", "", "address of the mail service, where it differs from --url")
	fl.StringVar(&f.mailKey, "mail-key", "",
		"service token of the mail service, where it differs from --key; better given as FINGERPOST_MAIL_KEY")
}

// Connect makes the client for the flags.
func (f *RemoteFlags) Connect() (*client.Client, error) {
	if f.Parallel < 1 || f.Parallel > client.MaxParallel {
		return nil, Usage("--parallel must be from 1 to %d", client.MaxParallel)
	}
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	o.MailKey, o.NoMail = f.mailKey, f.noMail
	if f.mailURL != "" && !f.noMail {
		if o.MailURL, err = client.CleanURL(f.mailURL); err != nil {
			return nil, Usage("--mail-url %v", err)
		}
	}
	return client.New(o), nil
}

// Interruptible ends the context of a command with Ctrl-C or SIGTERM; a second signal ends the process.
func Interruptible(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
}

// Passing reports whether a retry may help: the server is unreachable, or reports that it is not ready.
func Passing(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	}
	var exit *ExitError
	return !errors.As(err, &exit)
}
