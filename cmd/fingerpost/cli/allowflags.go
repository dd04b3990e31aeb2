package cli

import (
	"github.com/spf13/pflag"

	"fingerpost/resolver/catalog"
)

// AllowFlags are the flags of serve by which files are judged: to which private networks their addresses may lead, and
// whether recipients of mail find the service.
type AllowFlags struct {
	webhooks, keySets, logins []string
	publicURL                 *pflag.Flag // nil: it was not added
}

const (
	webhookAllow = "webhook-allow"
	keySetAllow  = "jwks-allow"
	loginAllow   = "login-allow"
	publicURL    = "public-url"
)

// Add adds the flags to a command that judges files for a service.
func (f *AllowFlags) Add(fl *pflag.FlagSet) {
	f.AddWebhooks(fl)
	f.AddKeySets(fl)
	f.AddLogins(fl)
	fl.String(publicURL, "", "address at which recipients of mail find the service, as serve has it; the empty text "+
		"says it has none, and links to unsubscribe are warnings (default not known)")
	f.publicURL = fl.Lookup(publicURL)
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

// Parse returns the networks, nil without the flag, and whether it is known that there is no public address. The error
// has all problems.
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
	if f.publicURL != nil && f.publicURL.Changed {
		text := f.publicURL.Value.String()
		if allows.NoPublicURL = text == ""; !allows.NoPublicURL {
			if _, wrong := catalog.ParsePublicURL(text); wrong != "" {
				all = append(all, "--"+publicURL+" "+wrong)
			}
		}
	}
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
