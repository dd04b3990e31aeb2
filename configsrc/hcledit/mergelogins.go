package hcledit

import (
	"reflect"
	"slices"

	"fingerpost/resolver/catalog"
)

// loginClashes lists the fields of a login that both have changed. Rules are no clash if they have changed different ones.
func loginClashes(of catalog.Clash, was, live, proposed *catalog.Login) []catalog.Clash {
	list := catalog.ClashesOf(of, was.AllFields(), live.AllFields(), proposed.AllFields())
	if _, ok := mergedRules(was.Rules, proposed.Rules, live.Rules); ok {
		list = slices.DeleteFunc(list, func(c catalog.Clash) bool { return c.Field == "rules" })
	}
	return list
}

// mergedLogin returns t with what changes from b to o; o, if both have added the login.
func mergedLogin(b, o, t *catalog.Login) *catalog.Login {
	if b == nil {
		return o
	}
	want := t.Clone()
	takeChange(&want.Issuer, b.Issuer, o.Issuer)
	takeChange(&want.ClientID, b.ClientID, o.ClientID)
	takeChange(&want.Label, b.Label, o.Label)
	takeChange(&want.CAFile, b.CAFile, o.CAFile)
	takeChange(&want.ClientSecret, b.ClientSecret, o.ClientSecret)
	takeChange(&want.Scopes, b.Scopes, o.Scopes)
	if rules, ok := mergedRules(b.Rules, o.Rules, t.Rules); ok {
		want.Rules = rules
	} else {
		want.Rules = o.Rules
	}
	return &want
}

// mergedRules returns t with the rules that change from b to o, such as those with the slug of a renamed project. A rule
// that t has changed, too, is not merged field by field: the result could let people in whom neither side means.
func mergedRules(b, o, t []catalog.LoginRule) (rules []catalog.LoginRule, ok bool) {
	if reflect.DeepEqual(b, t) {
		return o, true
	}
	if len(b) != len(o) {
		return nil, false
	}
	rules = slices.Clone(t)
	changed := make([]bool, len(t))
	for i := range b {
		if reflect.DeepEqual(b[i], o[i]) {
			continue
		}
		at := -1
		for j := range t {
			if at < 0 && !changed[j] && reflect.DeepEqual(t[j], b[i]) {
				at = j
			}
		}
		if at < 0 {
			return nil, false
		}
		rules[at], changed[at] = o[i], true
	}
	return rules, true
}
