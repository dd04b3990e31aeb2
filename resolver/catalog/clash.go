package catalog

// A Clash is one field that two changes of the same state set to different values: one that is proposed, and one that
// is live. Values are those of a FieldChange; they are nil for a secret.
type Clash struct {
	Kind      Kind   // KindFile for a text that a template takes by file()
	ProjectID int64  // 0: it belongs to no project
	Project   string // slug
	Object    string // slug, domain, template code, key name, or path of a file
	Field     string // the API's name; "": an object that the proposal changes is not live any more
	Secret    bool
	Removes   bool // the proposal removes the object, which has changed since
	Was       any
	Live      any
	Proposed  any
}

// KindFile is the Kind of a Clash in a file that is no config file.
const KindFile Kind = "file"

// ClashesOf lists the fields of of that live and proposed have otherwise, but for those in which one of them is as was.
// A nil list stands for a noun that does not exist, or not any more.
func ClashesOf(of Clash, was, live, proposed []Field) (list []Clash) {
	was, live, proposed = flat(was), flat(live), flat(proposed)
	for _, c := range AuditChanges(live, proposed) {
		before := fieldNamed(was, c.Field)
		if before == nil && flatField(c.Field) != nil &&
			(fieldNamed(live, c.Field) == nil || fieldNamed(proposed, c.Field) == nil) {
			continue // one of them has added a language
		}
		one := of
		one.Field, one.Secret, one.Live, one.Proposed = c.Field, c.Secret, c.Before, c.After
		if before != nil {
			if sameNamed(before, fieldNamed(live, c.Field)) || sameNamed(before, fieldNamed(proposed, c.Field)) {
				continue
			}
			value := auditValue(before)
			if one.Secret = one.Secret || hides(value); !one.Secret {
				one.Was = cutText(shown(value))
			}
		}
		if one.Secret {
			one.Live, one.Proposed = nil, nil
		}
		list = append(list, one)
	}
	return list
}

func sameNamed(a, b *Field) bool { return b != nil && sameAudited(a, b) }
