package catalog

// CheckLoginAddress says what is wrong with an address at which a provider of sign-in is asked, or to which it sends
// browsers, "" if nothing is: the rule is that of issuers. The answer completes a sentence whose subject is the address,
// which it does not quote. Nil allows http nowhere.
func CheckLoginAddress(address string, allow *HTTPAllow) string {
	if allow == nil {
		allow = new(HTTPAllow)
	}
	var ps Problems
	issuerURL.check(&ps, address, allow)
	for _, p := range ps {
		if !p.Warning {
			return p.Message
		}
	}
	return ""
}
