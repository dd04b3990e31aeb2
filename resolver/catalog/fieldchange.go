package catalog

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

func fieldNamed(fields []Field, name string) *Field {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// FieldChanges lists the fields that differ between two states of one noun, in the order of its table. A nil list
// stands for a noun that does not exist: then all fields with a value are listed. Each text of a template's locales is
// a field, such as locales.de.bodyHtml.
func FieldChanges(before, after []Field) (changes []FieldChange) {
	add := func(was, is *Field) {
		if was != nil && is != nil && sameAudited(was, is) {
			return
		}
		name, c := "", FieldChange{}
		var a, b any
		if was != nil {
			name, a = was.Name, auditValue(was)
		}
		if is != nil {
			name, b = is.Name, auditValue(is)
		}
		if reflect.DeepEqual(a, b) {
			return
		}
		c.Field = name
		private := was != nil && was.Private || is != nil && is.Private
		if c.Secret = private || hides(a) || hides(b); !c.Secret {
			c.Before, c.After = shown(a), shown(b)
		}
		changes = append(changes, c)
	}
	before, after = flat(before), flat(after)
	for i := range after {
		add(fieldNamed(before, after[i].Name), &after[i])
	}
	for i := range before {
		if fieldNamed(after, before[i].Name) == nil {
			add(&before[i], nil)
		}
	}
	return changes
}

// sameAudited compares the usual kinds of fields without an allocation: most are equal.
func sameAudited(a, b *Field) bool {
	switch a.Value.(type) {
	case *bool, *int, *string, **string, *Secret:
		return a.Same(*b)
	}
	return reflect.DeepEqual(auditValue(a), auditValue(b))
}

// auditValue returns a field's value in the form of FieldChange, but a Secret as it is. What has no value is nil.
func auditValue(f *Field) any {
	switch v := f.Value.(type) {
	case *int:
		return int64(*v)
	case *string:
		if *v != "" {
			return *v
		}
	case *Secret:
		if v.Source != SecretNone {
			return *v
		}
	case *[]Label:
		if len(*v) > 0 {
			labels := make(map[string]string, len(*v))
			for _, l := range *v {
				labels[l.Name] = l.Value
			}
			return labels
		}
	case []string:
		if v != nil {
			return v
		}
	case *[]string:
		if len(*v) > 0 {
			return *v
		}
	case []Secret:
		switch len(v) {
		case 0:
		case 1:
			return v[0]
		default:
			return v
		}
	case time.Time:
		if !v.IsZero() {
			return Moment(v)
		}
	default:
		return f.Plain()
	}
	return nil
}

// AuditChanges is FieldChanges with the values as the audit trail keeps them: of a long text the beginning.
func AuditChanges(before, after []Field) []FieldChange {
	return cutChanges(FieldChanges(before, after))
}

// hides reports whether v is a secret that must not be shown: one in clear text, or sealed. The text of an expression,
// such as env("X"), is no secret.
func hides(v any) bool {
	if list, is := v.([]Secret); is {
		return slices.ContainsFunc(list, func(s Secret) bool { return hides(s) })
	}
	s, is := v.(Secret)
	return is && s.Source != SecretEnv && s.Source != SecretFile
}

func shown(v any) any {
	switch s := v.(type) {
	case []Secret:
		texts := make([]string, len(s))
		for i := range s {
			texts[i], _ = shown(s[i]).(string)
		}
		return texts
	case Secret:
		if s.Source == SecretEnv {
			return `env("` + s.Ref + `")`
		}
		return `file("` + s.Ref + `")`
	}
	return v
}

// MaxAuditText is the longest text that the audit trail keeps of a field, in bytes. Of a longer one it has the beginning,
// the length and the SHA-256.
const MaxAuditText = 1024

func cutChanges(changes []FieldChange) []FieldChange {
	for i := range changes {
		changes[i].Before, changes[i].After = cutText(changes[i].Before), cutText(changes[i].After)
	}
	return changes
}

func cutText(v any) any {
	if list, is := v.([]string); is && slices.ContainsFunc(list, func(s string) bool { return len(s) > MaxAuditText }) {
		cut := make([]string, len(list))
		for i, s := range list {
			cut[i], _ = cutText(s).(string)
		}
		return cut
	}
	s, is := v.(string)
	if !is || len(s) <= MaxAuditText {
		return v
	}
	end := MaxAuditText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", s[:end], len(s), sha256.Sum256([]byte(s)))
}
