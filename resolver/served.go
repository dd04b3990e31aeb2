package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// EachDomain yields the domains of all projects, as of one moment, in the state that answers come from. The value
// is valid within the call. A slow yield keeps the store's old data on disk.
func (r *Resolver) EachDomain(yield func(*catalog.Domain) bool) error {
	return r.each(func(st *store.State) error { return st.EachDomain(yield) })
}

// ServedDomain returns the domain record of a canonical name or wildcard, and its project, in the state that answers come
// from; NOT_FOUND if there is none.
func (r *Resolver) ServedDomain(name string) (*catalog.Domain, *catalog.Project, error) {
	d, p := new(catalog.Domain), new(catalog.ProjectConfig)
	err := r.get("domain", func(v *store.View) (found bool, err error) {
		if found, err = v.Domain(d, []byte(name)); err != nil || !found {
			return found, err
		}
		return v.Project(p, d.ProjectID)
	})
	if err != nil {
		return nil, nil, err
	}
	return d, &p.Project, nil
}
