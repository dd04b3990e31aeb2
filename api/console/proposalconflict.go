package console

import (
	"encoding/json"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A conflictRow is a field that keeps a proposal from being applied.
type conflictRow struct {
	*client.FieldConflict
	Of, Label                     string // the object, and the field as forms call it; "": the object as a whole
	WasText, LiveText, WantedText string
}

func conflictRows(list []client.FieldConflict) (rows []conflictRow) {
	for i := range list {
		c := &list[i]
		kind := strings.ReplaceAll(c.Kind, "_", "-")
		title := form.Title(kind)
		if title == "" {
			title = c.Kind
		}
		row := conflictRow{FieldConflict: c, Of: title + " " + c.Object, WasText: plainText(c.Was),
			LiveText: plainText(c.Live), WantedText: plainText(c.Proposed)}
		if c.Field != nil {
			k := catalog.Kind(c.Kind)
			row.Label = say.Label(k, *c.Field, catalog.AttributeOf(k, *c.Field))
		}
		rows = append(rows, row)
	}
	return rows
}

// plainText is a value of a conflict as people read it; labels as forms have them.
func plainText(v any) string {
	if labels, is := v.(map[string]any); is {
		var lines []string
		for name, value := range labels {
			lines = append(lines, name+"="+say.Text(value))
		}
		slices.Sort(lines)
		return strings.Join(lines, ", ")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return say.Text(json.RawMessage(b))
}
