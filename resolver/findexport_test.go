package resolver

// DropIndexes lets the next search build the indexes.
func (r *Resolver) DropIndexes() { r.finder.forget() }
