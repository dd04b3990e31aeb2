package api

import (
	"slices"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	keysPath      = "/api/platform/keys"
	keyPath       = keysPath + "/{name}"
	rotateKeyPath = keyPath + "/rotate"
)

// keyFields are the fields that sort the list of keys.
var keyFields = []string{"name", "id", "expiresAt", "createdAt", "lastUsedAt"}

// permitKeys returns an error if the request's key may not manage keys.
func permitKeys(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	if !managesKeys(r.Key) {
		return refuseKeys
	}
	return nil
}

// listKeys answers GET /keys.
func (s *Server) listKeys(r *web.Request) error {
	page, err := web.ParsePaging(r.Ctx.URI().QueryString(), keyFields, nil)
	if err != nil {
		return err
	}
	if err := permitKeys(r); err != nil {
		return err
	}
	q := page.Query(nil)
	if q.Sort == "" {
		q.Sort = "name"
	}
	keys := s.resolver.Keys().All()
	rows, err := resolver.ArrangeKeys(s.keys.uses.rows(s.resolver, keys, r.Ctx.Time()), q)
	if err != nil {
		return err
	}
	r.SucceedPage("keys found", web.AppendRows(rows, resolver.AppendKey), page, len(keys))
	return nil
}

// createKey answers POST /keys. See web/write.go for the steps.
func (s *Server) createKey(r *web.Request) error {
	if err := permitKeys(r); err != nil {
		return err
	}
	f, err := readForm(r, keyNames, "lastUsedAt")
	if err != nil {
		return err
	}
	k, expiry, err := s.readKey(f, time.Now())
	if err != nil {
		return err
	}
	if err := beyond(r.Key, k, expiry); err != nil {
		return err
	}
	text := k.Renew()
	permit := s.permitted(r, func(key *resolver.Key, _ *resolver.KeySet) error { return beyond(key, k, expiry) })
	err = s.writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: k.Name, Create: k, Permit: permit}})
	if err != nil {
		return err
	}
	r.SucceedCreated("key created", s.newKeyRow(k, text, nil), keysPath+"/"+k.Name)
	return nil
}

// newKeyRow is the answer with the text of a new key, which is shown once. replaced may be nil.
func (s *Server) newKeyRow(k *catalog.Key, text string, replaced *catalog.Key) []byte {
	row := s.keys.uses.rows(s.resolver, []*resolver.Key{{Key: *k}}, time.Now())[0]
	row.Text, row.Replaced = text, replaced
	return resolver.AppendKey(nil, row)
}

// keyOf checks the name in the path and the key's permission, and returns the key with that name.
func (s *Server) keyOf(r *web.Request) (*resolver.Key, error) {
	name, _ := r.Ctx.UserValue("name").(string) // not unescaped: a name has nothing to escape
	if msg := catalog.CheckKeyName(name); msg != "" {
		return nil, web.InvalidField("name", msg)
	}
	if err := permitKeys(r); err != nil {
		return nil, err
	}
	k := s.resolver.Keys().Named(name)
	if k == nil {
		return nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such key"}
	}
	return k, nil
}

// rotateKey answers POST /keys/{name}/rotate. A key may rotate itself.
func (s *Server) rotateKey(r *web.Request) error {
	k, err := s.keyOf(r)
	if err != nil {
		return err
	}
	if err := beyond(r.Key, &k.Key, "expiresAt"); err != nil {
		return err
	}
	overlap, err := s.readOverlap(r)
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
	permit := s.permitted(r, func(key *resolver.Key, _ *resolver.KeySet) error {
		return beyond(key, &made.New, "expiresAt")
	})
	err = s.writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: k.Name, Rotate: rotate, Permit: permit}})
	if err != nil {
		return err
	}
	row := s.newKeyRow(&made.New, made.Text, &made.Old)
	if good := replacedBy(s.resolver.Keys(), k.Name, time.Now()); len(good) > 0 {
		row = resolver.AppendStillGood(append(row[:len(row)-1], ','), good)
	}
	r.Succeed("key rotated", row)
	return nil
}

// revokeKey answers DELETE /keys/{name}: with all=1 it ends the old keys of its rotations, too, else the answer names
// those that are still good.
func (s *Server) revokeKey(r *web.Request) error {
	k, err := s.keyOf(r)
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
		for _, old := range replacedBy(s.resolver.Keys(), k.Name, time.Now()) {
			names = append(names, old.Name)
		}
		slices.Reverse(names) // the one that was asked for last: as long as it is there, the call can be made again
		if i := slices.Index(names, r.Key.Name); i >= 0 {
			names = append(slices.Delete(names, i, i+1), r.Key.Name) // else the others would be refused
		}
	}
	for _, name := range names {
		permit := s.permitted(r, func(_ *resolver.Key, set *resolver.KeySet) error {
			if s.keys.isLast(set, names, time.Now()) {
				return refuseLastKey
			}
			return nil
		})
		err := s.writer.Write(r, &catalog.Edit{Key: &catalog.KeyEdit{Name: name, Permit: permit}})
		if err != nil && !(all && web.IsNotFound(err)) {
			return err
		}
	}
	data := []byte("null")
	if good := replacedBy(s.resolver.Keys(), k.Name, time.Now()); len(good) > 0 {
		data = resolver.AppendStillGood([]byte{'{'}, good)
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
