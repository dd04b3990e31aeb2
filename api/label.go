package api

import "fingerpost/resolver/catalog"

// readLabels reads a project's labels, an object of strings that replaces all present ones. Null and {} remove them.
// The names and the length of the values are checked by the project's Validate.
func (f *form) readLabels(name string, value any, to *[]catalog.Label) {
	if value == nil {
		*to = nil
		return
	}
	object, ok := value.(*object)
	if !ok {
		f.fail(name, "must be an object of strings, or null")
		return
	}
	var labels []catalog.Label
	for _, label := range object.names {
		text, ok := object.values[label].(string)
		if !ok {
			f.fail(name+"."+label, "must be a string")
		}
		labels = append(labels, catalog.Label{Name: label, Value: text})
	}
	catalog.SortLabels(labels)
	*to = labels
}
