package store

// declare writes the objects of a packed declaration.
func (w *writer) declare(objects []byte) error {
	d := borrow(objects)
	for range d.count() {
		if err := w.declareProject(&d); err != nil {
			return err
		}
	}
	if err := w.declareTemplates(&d, 0); err != nil {
		return err
	}
	for range d.count() {
		changed, err := w.declareKey(d.record())
		if err != nil {
			return err
		}
		w.effect.Keys = w.effect.Keys || changed
	}
	if d.bool() {
		changed, err := w.plain(keyDefaults, d.record())
		if err != nil {
			return err
		}
		w.effect.Defaults = w.effect.Defaults || changed
	}
	if d.bool() {
		changed, err := w.plain(keySealing, d.record())
		if err != nil {
			return err
		}
		w.effect.Sealing = w.effect.Sealing || changed
	}
	if d.err() != nil {
		return errPacked
	}
	return nil
}

func (w *writer) declareProject(d *decoder) error {
	id := d.fixed()
	effect, err := w.project(id, d.record())
	if err != nil {
		return err
	}
	domains := d.count()
	projectCopy := copyFor(domains, w.own)
	if effect != nil {
		effect.Domains = make([]string, 0, domains)
	}
	for range domains {
		name, err := w.domain(d.record(), id, projectCopy)
		if err != nil {
			return err
		}
		if effect != nil {
			effect.Domains = append(effect.Domains, string(name))
		}
	}
	return w.declareTemplates(d, id)
}

func (w *writer) declareTemplates(d *decoder, project int64) error {
	for range d.count() {
		if err := w.template(d.record(), project); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) declareKey(rec []byte) (changed bool, err error) {
	d := borrowingDecoder(rec, recordVersion)
	w.key = appendTextKey(w.key[:0], prefixKey, d.string())
	if d.failed {
		return false, errPacked
	}
	return w.plain(w.key, rec)
}
