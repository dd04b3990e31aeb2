package hcledit

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// mergeLocales returns t with what changes from b to o, text by text.
func mergeLocales(b, o, t catalog.Locales) catalog.Locales {
	merged := slices.Clone(t)
	for i := range o {
		l := o[i]
		was := b.Find(l.Tag)
		if was == nil {
			was = &catalog.Locale{Tag: l.Tag}
		}
		if *was == l {
			continue
		}
		if merged.Find(l.Tag) == nil {
			merged = append(merged, catalog.Locale{Tag: l.Tag})
		}
		texts, before := merged.Find(l.Tag).Fields(), was.Fields()
		for j, f := range l.Fields() {
			if !f.Same(before[j]) {
				texts[j].Set(f)
			}
		}
	}
	merged = slices.DeleteFunc(merged, func(l catalog.Locale) bool {
		return b.Find(l.Tag) != nil && o.Find(l.Tag) == nil
	})
	if len(merged) == 0 {
		return nil
	}
	merged.Sort()
	return merged
}

// locales is fields for the locales of a template that both sides have changed: texts that differ are no conflict.
func (m *merge) locales(at catalog.Clash, b, o, t []catalog.Field) (merged bool) {
	locales, is := t[0].Value.(*catalog.Locales)
	if !is || !m.force && len(catalog.ClashesOf(at, b, t, o)) > 0 {
		return false
	}
	*locales = mergeLocales(*b[0].Value.(*catalog.Locales), *o[0].Value.(*catalog.Locales), *locales)
	return true
}
