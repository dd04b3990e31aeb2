package catalog

// CheckLoginAddress says what is wrong with an address at which a provider of sign-in is asked, or to which it sends
// browsers, "" if nothing is. It must be one that an issuer may have. The answer completes a sentence whose subject is
// the address, which it does not quote. Nil allows http nowhere.
func CheckLoginAddress(address string, allow *HTTPAllow) string {
	rule := urlRule{flag: "--login-allow", example: "https://login.acme.example/token",
		noUser: "a provider tells clients apart by client_id"}
	if allow == nil {
		allow = new(HTTPAllow)
	}
	var ps Problems
	rule.check(&ps, address, allow)
	for _, p := range ps {
		if !p.Warning {
			return p.Message
		}
	}
	return ""
}
