package keys

import (
	"slices"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The rules of keys over the API (api/platform/README.md, Keys over the API).

var (
	refuseKeys = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "keys are managed with a key that has write and secrets on every project"}
	refuseLastKey = conflictName("the last key with every permission on every project cannot be revoked here",
		"is the last such key: create another one first, or remove this one from the files")
)

// conflictName returns a CONFLICT on the name of a key.
func conflictName(message, detail string) *catalog.Error {
	return &catalog.Error{Code: catalog.CodeConflict, Message: message, Problems: catalog.Problems{{Path: "name",
		Message: detail}}}
}

// refuseManager returns the reason why a key may not call the routes of keys, nil if it may.
func refuseManager(k *resolver.Key) error {
	const both = catalog.MayWrite | catalog.MaySecrets
	lacks := both &^ k.Allow
	if lacks == 0 && k.EveryProject() {
		return nil
	}
	e := *refuseKeys
	e.Requires = lacks
	return &e
}

// mayManage is refuseManager for a call on the key with a name.
func mayManage(k *resolver.Key, _ string) error { return refuseManager(k) }

// mayRotate is mayManage, but each key may rotate itself.
func mayRotate(k *resolver.Key, name string) error {
	if k.Name == name {
		return nil
	}
	return refuseManager(k)
}

// beyond returns what k has beyond the key that gives it: 403, one entry in details per field; nil if there is nothing.
// expiry is the name of the request's field for the end of k.
func beyond(giver *resolver.Key, k *catalog.Key, expiry string) error {
	var problems catalog.Problems
	has := giver.Allow
	if has&catalog.MayWrite != 0 {
		has |= catalog.MayPropose
		if giver.EveryProject() {
			has |= catalog.MayCreate
		}
	}
	if lacks := k.Allow &^ has; lacks != 0 {
		problems.Addf("allow", "this key has no %s itself", strings.Join(lacks.Words(), ", "))
	}
	if !giver.EveryProject() {
		if k.Projects == nil {
			problems.Addf("projects", "this key is not for every project itself")
		}
		if k.Owner != "" && k.Owner != giver.Owner {
			problems.Addf("owner", "this key has not this owner itself")
		}
		for _, slug := range k.Projects {
			if !giver.Names(slug) {
				problems.Addf("projects", "this key is not for the project %q itself", slug)
			}
		}
	}
	if end := giver.ExpiresAt; !end.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(end)) {
		problems.Addf(expiry, "this key ends at %s itself", catalog.SayMoment(end))
	}
	if len(problems) == 0 {
		return nil
	}
	return &catalog.Error{Code: catalog.CodeForbidden, Requires: k.Allow &^ has,
		Message: "a key cannot give, rotate or prolong more than it has itself", Problems: problems}
}

// isLast reports whether no key with every permission on every project is left without the named ones, among which one
// has. A key that ends earlier than theirs is none: when it ends, nobody is left.
func (a *API) isLast(set *resolver.KeySet, names []string, now time.Time) bool {
	until := func(k *resolver.Key) time.Time {
		if k.ExpiresAt.IsZero() {
			return time.Unix(1<<40, 0)
		}
		return k.ExpiresAt
	}
	var goes, stays time.Time // the latest end of a full key that goes, and of one that stays
	for _, k := range set.All() {
		end := &stays
		if slices.Contains(names, k.Name) {
			end = &goes
		}
		if k.Full(now) && !a.Blocked[k.ID] && until(k).After(*end) {
			*end = until(k)
		}
	}
	return goes.After(stays)
}

// replacedBy lists the old keys of rotations of the key with a name that are still good.
func replacedBy(set *resolver.KeySet, name string, now time.Time) (old []*catalog.Key) {
	for _, k := range set.All() {
		if k.ReplacedBy(name) && !k.Expired(now) {
			old = append(old, &k.Key)
		}
	}
	return old
}

// permitted returns the check of a change of keys that is made right before the files change: it looks the request's key
// up again, and calls then with it.
func (a *API) permitted(r *web.Request, then func(key *resolver.Key, set *resolver.KeySet) error) func() error {
	was := r.Key
	return func() error {
		set := a.Live.Keys()
		key := set.Renewed(was)
		if key == nil || key.Expired(time.Now()) {
			return web.RefuseKey
		}
		return then(key, set)
	}
}
