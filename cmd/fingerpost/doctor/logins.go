package doctor

import (
	"context"
	"log/slog"
	"slices"

	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// login goes through the sign-in at each provider of the files, as far as it goes without a person, if that was asked for.
func (p *patient) login(ctx context.Context) []Result {
	var all []catalog.Login
	if p.checked != nil {
		for i := range p.checked.Files {
			all = append(all, p.checked.Files[i].Declared.Logins...)
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case !p.Login:
		return []Result{ok("%s of the files, not asked: --login goes through discovery, keys and redirect URI",
			catalog.Count(len(all), "login"))}
	}
	secrets := p.opener()
	desk := login.New(login.Options{Logins: func() []catalog.Login { return all }, Secret: secrets.OpenLogin,
		ReadCA: secrets.ReadLoginCA, PublicURL: p.Listen.PublicURL, Allow: p.Allow.Logins, Version: p.Build.Version,
		Logger: slog.New(slog.DiscardHandler), Timeout: patience})
	found := make([][]Result, len(all))
	each(indexes(all), func(i int) {
		for _, f := range desk.Check(ctx, &all[i]) {
			r := Result{State: OK, Message: "login " + all[i].Name + ": " + f.Message, Todo: f.Todo}
			if f.Todo != "" {
				r.State = Failure
			}
			found[i] = append(found[i], r)
		}
	})
	return slices.Concat(found...)
}
