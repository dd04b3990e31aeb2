package cli

import (
	"github.com/spf13/pflag"

	"fingerpost/resolver/catalog"
)

// AllowFlags say to which private networks the addresses of files may lead.
type AllowFlags struct{ webhooks, keySets, logins []string }

const (
	webhookAllow = "webhook-allow"
	keySetAllow  = "jwks-allow"
	loginAllow   = "login-allow"
)

// Add adds the flags.
func (f *AllowFlags) Add(fl *pflag.FlagSet) {
	f.AddWebhooks(fl)
	f.AddKeySets(fl)
	f.AddLogins(fl)
}

// AddWebhooks adds the flag for webhooks.
func (f *AllowFlags) AddWebhooks(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.webhooks, webhookAllow, nil,
		"networks (CIDR,…) to whose addresses webhooks may lead although they are private, and with http, such as 10.0.0.0/8")
}

// AddKeySets adds the flag for jwks_url.
func (f *AllowFlags) AddKeySets(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.keySets, keySetAllow, nil,
		"networks (CIDR,…) to whose addresses jwks_url may lead although they are private, and with http, such as 10.0.0.0/8")
}

// AddLogins adds the flag for the providers of logins.
func (f *AllowFlags) AddLogins(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.logins, loginAllow, nil,
		"networks (CIDR,…) to whose addresses issuers of logins may lead although they are private, and with http, "+
			"such as 10.0.0.0/8")
}

// Parse returns the networks, nil without the flag. The error has all problems.
func (f *AllowFlags) Parse() (allows catalog.Allows, err error) {
	var all []string
	parse := func(flag string, given []string) *catalog.HTTPAllow {
		if given == nil {
			return nil
		}
		networks, bad := ParseNetworks("--"+flag, given)
		all = append(all, bad...)
		return &catalog.HTTPAllow{Networks: networks}
	}
	allows = catalog.Allows{Webhooks: parse(webhookAllow, f.webhooks), KeySets: parse(keySetAllow, f.keySets),
		Logins: parse(loginAllow, f.logins)}
	return allows, UsageAll(all)
}

// ParseAll is Parse for the service, which allows nothing without a flag.
func (f *AllowFlags) ParseAll() (catalog.Allows, error) {
	allows, err := f.Parse()
	for _, allow := range allows.All() {
		if *allow == nil {
			*allow = new(catalog.HTTPAllow)
		}
	}
	return allows, err
}
