package login

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// maxHints bounds what a page of refusal shows.
const maxHints = 10

// RefusalHints says which claims nearly match rules of the block, for a person who matches no rule. It quotes values
// of claims, which are for that person alone.
func RefusalHints(l *catalog.Login, c catalog.Claims) (hints []string) {
	add := func(hint string) {
		if hint != "" && !slices.Contains(hints, hint) && len(hints) < maxHints {
			hints = append(hints, hint)
		}
	}
	for i := range l.Rules {
		r := &l.Rules[i]
		values := c.Values(r.Claim)
		switch {
		case r.Matches(c):
		case r.Claim == "email" && c["email"] != nil && c.Email() == "":
			add("The provider says that the address is not verified (email_verified), and so no rule for email counts.")
		case len(values) == 0:
			add(missing(l, r.Claim, c))
		default:
			for _, value := range values {
				add(nearly(r, value))
			}
			if isEntra(l) && r.Claim == "groups" && !isObjectID(r.Value) && slices.ContainsFunc(values, isObjectID) {
				add("Entra names groups by their object id: value must be that id, not the name of the group.")
			}
		}
	}
	return hints
}

// nearly says how a value differs from that of a rule, "" if by more than spelling.
func nearly(r *catalog.LoginRule, value string) string {
	same := func(normal func(string) string) bool {
		rule := catalog.LoginRule{Claim: "x", Value: normal(r.Value)}
		return rule.Matches(catalog.Claims{"x": normal(value)})
	}
	bare := func(text string) string { return strings.TrimPrefix(text, "/") }
	has := fmt.Sprintf("The claim %s has %s, and a rule has %s: ", quoted(r.Claim, nil), quoted(value, nil),
		quoted(r.Value, nil))
	switch {
	case same(bare):
		return has + `Keycloak's mapper of groups sends the slash while "Full group path" is on.`
	case same(strings.ToLower):
		return has + "upper and lower case differ."
	case same(strings.TrimSpace):
		return has + "there is a space."
	case same(func(text string) string { return strings.ToLower(bare(text)) }):
		return has + "the slash, and upper and lower case, differ."
	}
	return ""
}

// missing says why a claim of a rule has no texts.
func missing(l *catalog.Login, claim string, c catalog.Claims) string {
	name := quoted(claim, nil)
	if isEntra(l) && claim == "groups" && overage(c) {
		return "Entra leaves groups out where a person is in more than 200: send only groups that are assigned to the " +
			`application, or use app roles and a rule for the claim "roles".`
	}
	if path := pathTo(c, claim); path != "" && path != claim {
		return fmt.Sprintf("The claim %s is at another place: write claim = %s.", name, quoted(path, nil))
	}
	if value, found := c[claim]; found {
		return notTexts(name, claim, value)
	}
	scopes := l.Scopes
	if len(scopes) == 0 {
		scopes = catalog.DefaultLoginScopes
	}
	host := hostOf(l)
	switch {
	case host == "accounts.google.com" && (claim == "groups" || claim == "preferred_username"):
		return "Google sends no " + claim + `: rules can use "email", or "hd" for the organisation.`
	case isEntra(l) && claim == "email":
		return `Entra sends "email" only as an optional claim of the application, and for people with a mailbox: add it there.`
	case isEntra(l) && claim == "groups":
		return "Entra sends groups only if the application has a groups claim, in its token configuration."
	case strings.Contains(l.Issuer, "/realms/") && claim == "groups":
		return "Keycloak sends groups only with a mapper: Group Membership in the client's dedicated scope, in the ID token."
	case claim == "groups" && !slices.Contains(scopes, "groups"):
		return `The provider sent no claim "groups": it may need the scope "groups" in scopes.`
	}
	return fmt.Sprintf("The provider sent no claim %s.", name)
}

// notTexts says what a claim has instead of texts.
func notTexts(name, claim string, value any) string {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			path := claim + "." + slices.Min(slices.Collect(maps.Keys(v)))
			return fmt.Sprintf("The claim %s is an object: name a value in it by its path, such as %s.", name, quoted(path, nil))
		}
	case []any:
		if len(v) > 0 {
			return fmt.Sprintf("The claim %s is a list without texts: only texts and lists of texts match.", name)
		}
	default:
		return fmt.Sprintf("The claim %s is no text: only texts and lists of texts match.", name)
	}
	return fmt.Sprintf("The claim %s is empty.", name)
}

// maxDepth bounds the search for a claim in objects.
const maxDepth = 4

// pathTo returns the path of the first claim with texts whose last step is the name, "" if there is none.
func pathTo(object map[string]any, name string) string { return pathBelow(object, "", name, maxDepth) }

func pathBelow(object map[string]any, above, name string, depth int) string {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		path := above + key
		if key == name && len(catalog.Claims{"x": object[key]}.Values("x")) > 0 {
			return path
		}
		if below, is := object[key].(map[string]any); is && depth > 1 {
			if found := pathBelow(below, path+".", name, depth-1); found != "" {
				return found
			}
		}
	}
	return ""
}

// overage reports whether Entra says that there are too many groups for a token.
func overage(c catalog.Claims) bool {
	if has(c, "_claim_names.groups") {
		return true
	}
	return c["hasgroups"] == true || c["hasgroups"] == "true"
}

func hostOf(l *catalog.Login) string {
	if u, err := url.Parse(l.Issuer); err == nil {
		return u.Hostname()
	}
	return ""
}

func isEntra(l *catalog.Login) bool {
	host := hostOf(l)
	return host == "sts.windows.net" || strings.HasPrefix(host, "login.microsoftonline.") ||
		host == "login.partner.microsoftonline.cn"
}

// isObjectID reports whether a text looks like an id of Entra: 8-4-4-4-12 hexadecimal digits.
func isObjectID(text string) bool {
	parts := strings.Split(text, "-")
	return len(text) == 36 && len(parts) == 5 && len(parts[0]) == 8 && len(parts[4]) == 12 &&
		strings.Trim(text, "0123456789abcdefABCDEF-") == ""
}
