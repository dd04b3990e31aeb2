package catalog

import (
	"cmp"
	"slices"
)

// A Field is one attribute of a noun, as Fields lists it.
type Field struct {
	Name string // the API's name; files use Snake(Name)
	// Value points into the noun: *bool, **bool (nullable), *int, *string, **string (nullable), *Secret, *[]string,
	// *[]Label or *Locales. A noun without Fields may have a []string, []Secret or time.Time, too.
	Value any
	OneOf []string // the allowed values of an enum, for a *string and the elements of a *[]string
	// Label names the field for people, and Help tells them what it does; "": its name says it.
	Label, Help string
	Unset       string // what null means, for people
	Group       string // heads this field and those after it in a long form; "": it belongs to those before it
	Required    bool   // an object cannot do without it
	Lines       bool   // a text may have several lines
	Verbatim    bool   // the line ends of a text count
	// FileOnly says that requests of the API do not have the field: only the files change it.
	FileOnly bool
	Heading  bool   // the value is the label of the object's block, which names the object
	File     string // the attribute in the files; "": Snake(Name)
	// Block is the type of the blocks in the object's block that hold the value; "": an attribute holds it.
	Block string
	// Own says that this service alone has the field: other services with the API ignore it, and their answers lack it.
	Own bool
	// Private says that what tells of a change tells that the value changed, and neither the old nor the new one.
	Private bool
	// Follows names a field of the noun: a request of the API that has that field and not this one sets this one, too.
	Follows string
	// Together names a group: a block that has one field of it inherits none of the others.
	Together string
	// BoundTo names the fields of the noun that say where a secret goes: with another value of one of them, a stored
	// secret is not kept.
	BoundTo []string
	// Files says that elements of a *[]string may be the FileText of a file.
	Files bool
	// Elements says that a plan tells which elements of a []string come and go: each says much.
	Elements bool
}

// FieldNames lists the names of fields.
func FieldNames(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// RequestNames lists the fields that requests of the API may have.
func RequestNames(fields []Field) (names []string) {
	for _, f := range fields {
		if !f.FileOnly {
			names = append(names, f.Name)
		}
	}
	return names
}

// Attribute returns the field's name in the files.
func (f *Field) Attribute() string { return cmp.Or(f.File, Snake(f.Name)) }

// Plain returns the value: a bool, an int, a string, a Secret, a []string, a []Label, Locales, or nil for null.
func (f Field) Plain() any {
	switch v := f.Value.(type) {
	case *bool:
		return *v
	case **bool:
		if *v != nil {
			return **v
		}
		return nil
	case *int:
		return *v
	case *string:
		return *v
	case **string:
		if *v != nil {
			return **v
		}
		return nil
	case *Secret:
		return *v
	case *[]Label:
		return *v
	case *Locales:
		return *v
	case *[]string:
		return *v
	}
	panic("catalog: a Field of a type that no case handles: impossible while Fields and this switch agree")
}

// Same reports whether two fields of one kind have the same value. It does not allocate.
func (f Field) Same(g Field) bool {
	switch v := f.Value.(type) {
	case *bool:
		return *v == *g.Value.(*bool)
	case **bool:
		return samePointed(*v, *g.Value.(**bool))
	case *int:
		return *v == *g.Value.(*int)
	case *string:
		return *v == *g.Value.(*string)
	case **string:
		return samePointed(*v, *g.Value.(**string))
	case *Secret:
		return *v == *g.Value.(*Secret)
	case *[]Label:
		return slices.Equal(*v, *g.Value.(*[]Label))
	case *Locales:
		return slices.Equal(*v, *g.Value.(*Locales))
	case *[]string:
		return slices.Equal(*v, *g.Value.(*[]string))
	}
	panic("catalog: a Field of a type that no case handles: impossible while Fields and this switch agree")
}

func samePointed[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Set gives f the value of g, a field of the same kind.
func (f Field) Set(g Field) { copyMissing([]Field{f}, 0, []Field{g}, 1) }

// SameFields reports whether two nouns of one kind have the same values.
func SameFields(a, b []Field) bool { return slices.EqualFunc(a, b, Field.Same) }

// A FieldSet is the set of a noun's Fields (by index) that a file sets; the others come from the defaults block, then
// from the built-in default.
type FieldSet uint32

// Has reports whether field i is set.
func (s FieldSet) Has(i int) bool { return s&(1<<i) != 0 }

// With returns s with field i in it.
func (s FieldSet) With(i int) FieldSet { return s | 1<<i }

// copyMissing copies the fields that are in srcSaid and not in said from src to dst.
func copyMissing(dst []Field, said FieldSet, src []Field, srcSaid FieldSet) {
	for i := range dst {
		if said.Has(i) || !srcSaid.Has(i) {
			continue
		}
		switch d := dst[i].Value.(type) {
		case *bool:
			*d = *src[i].Value.(*bool)
		case **bool:
			*d = *src[i].Value.(**bool)
		case *[]Label:
			*d = *src[i].Value.(*[]Label)
		case *Locales:
			*d = *src[i].Value.(*Locales)
		case *[]string:
			*d = *src[i].Value.(*[]string)
		case *int:
			*d = *src[i].Value.(*int)
		case *string:
			*d = *src[i].Value.(*string)
		case **string:
			*d = *src[i].Value.(**string)
		case *Secret:
			*d = *src[i].Value.(*Secret)
		default:
			panic("catalog: a Field of a type that no case handles: impossible while Fields and this switch agree")
		}
	}
}
