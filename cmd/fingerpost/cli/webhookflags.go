package cli

import (
	"github.com/spf13/pflag"

	"fingerpost/resolver/catalog"
)

// WebhookFlags say where webhooks may lead.
type WebhookFlags struct{ allow []string }

// Add adds the flags.
func (f *WebhookFlags) Add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.allow, "webhook-allow", nil,
		"networks (CIDR,…) to whose addresses webhooks may lead although they are private, and with http, such as 10.0.0.0/8")
}

// Parse returns the networks, nil without the flag. The error has all problems.
func (f *WebhookFlags) Parse() (*catalog.WebhookAllow, error) {
	if f.allow == nil {
		return nil, nil
	}
	networks, bad := ParseNetworks("--webhook-allow", f.allow)
	return &catalog.WebhookAllow{Networks: networks}, UsageAll(bad)
}
