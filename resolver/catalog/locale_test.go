package catalog_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestLocalesAsJSON(t *testing.T) {
	t.Parallel()
	locales := catalog.Locales{{Tag: "de", SubjectTemplate: "Hallo & <b>", BodyHTML: "<p>", BodyText: "x"}, {Tag: "pt-BR", SubjectTemplate: "Olá", BodyText: "\"\u2028"}}
	text, err := json.Marshal(&locales)
	if err != nil {
		t.Fatal(err)
	}
	var got catalog.Locales
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, locales) {
		t.Errorf("%v %+v of %s", err, got, text)
	}
	for _, none := range []string{"{}", "null"} {
		if err := json.Unmarshal([]byte(none), &got); err != nil || got != nil {
			t.Errorf("%v %+v of %s", err, got, none)
		}
	}
	if text, err := json.Marshal(catalog.Locales(nil)); err != nil || string(text) != "{}" {
		t.Errorf("%s %v", text, err)
	}
}

// TestLocaleChanges: a change names the text and the language that differ.
func TestLocaleChanges(t *testing.T) {
	t.Parallel()
	of := func(locales ...catalog.Locale) []catalog.Field {
		return (&catalog.Template{Name: "N", Locales: locales}).Fields()
	}
	de := catalog.Locale{Tag: "de", SubjectTemplate: "Hallo", BodyText: "x"}
	other := de
	other.BodyText = "y"
	fr := catalog.Locale{Tag: "fr", SubjectTemplate: "Salut"}
	f := func(before, after []catalog.Field, want ...catalog.FieldChange) {
		t.Helper()
		if got := catalog.FieldChanges(before, after); !slices.EqualFunc(got, want, func(a, b catalog.FieldChange) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	f(of(de, fr), of(de, fr))
	f(of(de), of(other), catalog.FieldChange{Field: "locales.de.bodyText", Before: "x", After: "y"})
	f(of(de), of(de, fr), catalog.FieldChange{Field: "locales.fr.subjectTemplate", After: "Salut"})
	f(of(de, fr), of(de), catalog.FieldChange{Field: "locales.fr.subjectTemplate", Before: "Salut"})
	f(nil, of(fr), catalog.FieldChange{Field: "name", After: "N"}, catalog.FieldChange{Field: "active", After: false},
		catalog.FieldChange{Field: "locales.fr.subjectTemplate", After: "Salut"})
	field := catalog.FieldOf(catalog.KindTemplate, "locales.pt-BR.bodyHtml")
	if field == nil || field.Label != "HTML (pt-BR)" || field.Attribute() != "locale.pt-BR.body_html" || !field.Verbatim {
		t.Errorf("%+v", field)
	}
	for _, none := range []string{"locales.de", "locales.de.name", "locales..", "other.de.bodyHtml"} {
		if catalog.FieldOf(catalog.KindTemplate, none) != nil {
			t.Errorf("there is a field %s", none)
		}
	}
	if catalog.FieldOf(catalog.KindProject, "locales.de.bodyHtml") != nil {
		t.Error("a project has locales")
	}
	list := catalog.ClashesOf(catalog.Clash{}, of(de, fr), of(other, fr), of(de))
	if len(list) != 0 {
		t.Errorf("different texts clash: %+v", list)
	}
	third := de
	third.BodyText = "z"
	if list = catalog.ClashesOf(catalog.Clash{}, of(de), of(other), of(third)); len(list) != 1 || list[0].Field != "locales.de.bodyText" ||
		list[0].Was != "x" || list[0].Live != "y" || list[0].Proposed != "z" {
		t.Errorf("%+v", list)
	}
}
