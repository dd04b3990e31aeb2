// Package keys answers the calls of /api/platform/keys: it lists, creates, rotates and revokes the keys that the files
// declare. api/platform/README.md, Keys over the API, has the rules.
//
// What it promises. Only a key with write and secrets on every project manages keys, and none gives, rotates or prolongs
// more than it has itself. The last key with every permission on every project is not revoked. Both hold at the moment
// at which the files change: the request's key and the keys that are left are looked at again directly before. The text
// of a key is in the answer that makes it, and nowhere else.
//
// What it needs. The live keys and projects, a web.Writer for the files, and the Uses of keys, by interfaces that it
// declares.
//
// What it does not do. It does not check the key of a request; package api does. Keys cannot be proposed: a branch is
// read by more people than the answer to a request.
package keys

import (
	"cmp"
	"slices"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

const (
	path    = "/api/platform/keys"
	keyPath = path + "/{name}"
)

// Live has the keys and the projects that keys may name; *resolver.Resolver implements it.
type Live interface {
	Keys() *resolver.KeySet
	ProjectBySlug(slug string) (*catalog.Project, error)
}

// Uses knows when keys were made and last used. Rows returns the keys with their uses, in the order of the keys.
type Uses interface {
	Rows(keys []*resolver.Key, now time.Time) []*rowjson.KeyRow
}

// An API answers the calls. Safe for concurrent use.
type API struct {
	Live    Live
	Writer  *web.Writer
	Uses    Uses
	Blocked map[string]bool // public ids of keys that are refused even if the files declare them
}

// Routes lists every call.
func (a *API) Routes() []web.Route {
	const write = catalog.MayWrite
	return []web.Route{
		web.Call("GET", path, write, web.ByAuthority, a.list),
		web.Call("POST", path, write, web.LiveOnly, a.create),
		web.Call("POST", keyPath+"/rotate", write, web.LiveOnly, a.rotate),
		web.Call("DELETE", keyPath, write, web.LiveOnly, a.revoke),
	}
}

// keyFields are the fields that sort the list of keys.
var keyFields = []string{"name", "id", "expiresAt", "createdAt", "lastUsedAt"}

// list answers GET /keys.
func (a *API) list(r *web.Request) error {
	page, err := web.ParsePaging(r.Ctx.URI().QueryString(), keyFields, nil)
	if err != nil {
		return err
	}
	if err := refuseManager(r.Key); err != nil {
		return err
	}
	q := page.Query(nil)
	if q.Sort == "" {
		q.Sort = "name"
	}
	keys := a.Live.Keys().All()
	rows, err := resolver.ArrangeKeys(a.Uses.Rows(keys, r.Ctx.Time()), q)
	if err != nil {
		return err
	}
	r.SucceedPage("keys found", web.AppendRows(rows, rowjson.AppendKey), page, len(keys))
	return nil
}

// create answers POST /keys. See web/write.go for the steps.
func (a *API) create(r *web.Request) error {
	if err := refuseManager(r.Key); err != nil {
		return err
	}
	f, err := r.ReadForm(keyNames, "lastUsedAt")
	if err != nil {
		return err
	}
	k, expiry, err := a.readKey(f, time.Now())
	if err != nil {
		return err
	}
	if err := beyond(r.Key, k, expiry); err != nil {
		return err
	}
	text := k.Renew()
	permit := a.permitted(r, func(key *resolver.Key, _ *resolver.KeySet) error {
		return cmp.Or(refuseManager(key), beyond(key, k, expiry))
	})
	err = a.Writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: k.Name, Create: k, Permit: permit}})
	if err != nil {
		return err
	}
	r.SucceedCreated("key created", a.newKeyRow(k, text, nil), path+"/"+k.Name)
	return nil
}

// newKeyRow is the answer with the text of a new key, which is shown once. replaced may be nil.
func (a *API) newKeyRow(k *catalog.Key, text string, replaced *catalog.Key) []byte {
	row := a.Uses.Rows([]*resolver.Key{{Key: *k}}, time.Now())[0]
	row.Text, row.Replaced = text, replaced
	return rowjson.AppendKey(nil, row)
}

// keyOf checks the name in the path and the key's permission, and returns the key with that name.
func (a *API) keyOf(r *web.Request, may func(k *resolver.Key, name string) error) (*resolver.Key, error) {
	name, _ := r.Ctx.UserValue("name").(string) // not unescaped: a name has nothing to escape
	if msg := catalog.CheckKeyName(name); msg != "" {
		return nil, web.InvalidField("name", msg)
	}
	if err := may(r.Key, name); err != nil {
		return nil, err
	}
	k := a.Live.Keys().Named(name)
	if k == nil {
		return nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such key"}
	}
	return k, nil
}

// rotate answers POST /keys/{name}/rotate.
func (a *API) rotate(r *web.Request) error {
	k, err := a.keyOf(r, mayRotate)
	if err != nil {
		return err
	}
	if err := beyond(r.Key, &k.Key, "expiresAt"); err != nil {
		return err
	}
	overlap, err := r.ReadOverlap()
	if err != nil {
		return err
	}
	var made *catalog.Rotation
	rotate := func(k catalog.Key) (*catalog.Rotation, error) {
		rotation, err := k.Rotate(time.Now(), overlap)
		if err != nil {
			return nil, conflictName("this key cannot be rotated", err.Error())
		}
		made = &rotation
		return made, nil
	}
	permit := a.permitted(r, func(key *resolver.Key, _ *resolver.KeySet) error {
		if err := mayRotate(key, k.Name); err != nil {
			return err
		}
		return beyond(key, &made.New, "expiresAt")
	})
	err = a.Writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: k.Name, Rotate: rotate, Permit: permit}})
	if err != nil {
		return err
	}
	row := a.newKeyRow(&made.New, made.Text, &made.Old)
	if good := replacedBy(a.Live.Keys(), k.Name, time.Now()); len(good) > 0 {
		row = rowjson.AppendStillGood(append(row[:len(row)-1], ','), good)
	}
	r.Succeed("key rotated", row)
	return nil
}

// revoke answers DELETE /keys/{name}: with all=1 it ends the old keys of its rotations, too, else the answer names
// those that are still good.
func (a *API) revoke(r *web.Request) error {
	k, err := a.keyOf(r, mayManage)
	if err != nil {
		return err
	}
	all, err := readAll(r)
	if err != nil {
		return err
	}
	if err := r.Matches(""); err != nil { // a key has no ETag: only * names it
		return err
	}
	names := []string{k.Name}
	if all {
		for _, old := range replacedBy(a.Live.Keys(), k.Name, time.Now()) {
			names = append(names, old.Name)
		}
		slices.Reverse(names) // the one that was asked for last: as long as it is there, the call can be made again
		if i := slices.Index(names, r.Key.Name); i >= 0 {
			names = append(slices.Delete(names, i, i+1), r.Key.Name) // else the others would be refused
		}
	}
	for _, name := range names {
		permit := a.permitted(r, func(key *resolver.Key, set *resolver.KeySet) error {
			if err := refuseManager(key); err != nil {
				return err
			}
			if a.isLast(set, names, time.Now()) {
				return refuseLastKey
			}
			return nil
		})
		err := a.Writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: name, Permit: permit}})
		if err != nil && !(all && catalog.IsNotFound(err)) {
			return err
		}
	}
	data := []byte("null")
	if good := replacedBy(a.Live.Keys(), k.Name, time.Now()); len(good) > 0 {
		data = rowjson.AppendStillGood([]byte{'{'}, good)
	}
	r.Succeed("key revoked", data)
	return nil
}

// readAll reads the parameter all.
func readAll(r *web.Request) (bool, error) {
	q := web.ParseQuery(r.Ctx.URI().QueryString(), "all")
	value, given := q.Values["all"]
	switch {
	case len(q.Problems) > 0:
		return false, web.Invalid(q.Problems...)
	case given && value != "1" && value != "0":
		return false, web.InvalidField("all", "must be 1 (the old keys of its rotations, too) or 0 (this key alone)")
	case value == "1" && r.Dry:
		return false, web.InvalidField(web.DryRunParam, "is not for all=1, which makes one change after the other")
	}
	return value == "1", nil
}
