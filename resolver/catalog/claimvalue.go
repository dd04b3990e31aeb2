package catalog

// A ClaimValue is a claim with one of its values.
type ClaimValue struct{ Claim, Value string }

// Matched lists the values for which rules of the login match, each once. Rules that match claims match what ClaimsOf
// makes of the list, too.
func (l *Login) Matched(c Claims) (list []ClaimValue) {
	seen := map[ClaimValue]bool{}
	for i := range l.Rules {
		r := &l.Rules[i]
		v := ClaimValue{Claim: r.Claim, Value: r.Matched(c)}
		if v.Value != "" && !seen[v] {
			seen[v] = true
			list = append(list, v)
		}
	}
	return list
}

// ClaimsOf returns claims that have the values, and no others.
func ClaimsOf(values []ClaimValue) Claims {
	c := Claims{}
	for _, v := range values {
		if v.Claim == "email" { // only a text counts
			c[v.Claim] = v.Value
			continue
		}
		list, _ := c[v.Claim].([]any)
		c[v.Claim] = append(list, v.Value)
	}
	return c
}
