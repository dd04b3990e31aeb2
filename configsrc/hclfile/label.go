package hclfile

import (
	"fmt"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// labelsValue reads the map of a project's labels. It reports every problem at the name or value that has it.
func (d *decoder) labelsValue(attr *hclsyntax.Attribute, to *[]catalog.Label) bool {
	object, ok := Unparen(attr.Expr).(*hclsyntax.ObjectConsExpr)
	if !ok {
		d.mismatch(attr.Name, attr.Expr, wantLabels)
		return false
	}
	before := len(d.diags)
	first := map[string]hcl.Range{}
	labels := make([]catalog.Label, 0, len(object.Items))
	for i, item := range object.Items {
		if i == catalog.MaxLabels {
			d.errorf(item.KeyExpr.Range(), fmt.Sprintf("labels: %d labels are allowed", i), "there are %d", len(object.Items))
		}
		labels = append(labels, d.mapItem(item, first))
	}
	if len(d.diags) > before {
		return false
	}
	catalog.SortLabels(labels)
	if *to = labels; len(labels) == 0 {
		*to = nil
	}
	return true
}

// mapItem reads one label. first has the names before it and where they are.
func (d *decoder) mapItem(item hclsyntax.ObjectConsItem, first map[string]hcl.Range) catalog.Label {
	name, rng, field := d.MapKey(item), item.KeyExpr.Range(), "labels"
	if msg := catalog.CheckLabelName(name); msg != "" {
		d.errorf(rng, msg, "%s", labelNameHint(name))
	} else if start, taken := first[name]; taken {
		d.errorf(rng, "label "+Quoted(name)+" is there twice", "%s", "the first is at "+d.at(start))
	} else {
		first[name] = rng
		field += "." + name
	}
	value, ok := d.stringValue(field, item.ValueExpr, wantString)
	if msg := catalog.CheckLabelValue(value); ok && msg != "" {
		d.errorf(item.ValueExpr.Range(), field+": "+msg, "")
	}
	return catalog.Label{Name: name, Value: value}
}

// MapKey returns the key of a map's item as the language reads it: the text of a string, or the word itself. Nothing is
// evaluated.
func (s *Source) MapKey(item hclsyntax.ObjectConsItem) string {
	key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return s.Text(item.KeyExpr.Range())
	}
	if t, quoted := key.Wrapped.(*hclsyntax.TemplateExpr); quoted {
		if text, plain := s.literalText(t); plain {
			return text
		}
	}
	return s.Text(key.Range())
}

// labelNameHint returns the nearest valid name, for someone who wrote a name with capitals, hyphens, dots or blanks.
func labelNameHint(name string) string {
	better := strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
	if catalog.CheckLabelName(better) == "" {
		return "did you mean `" + better + "`?"
	}
	return ""
}
