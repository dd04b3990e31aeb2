package hcledit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// WebhookBlock returns the block that declares w, formatted. Its secrets must not be in clear text.
func WebhookBlock(w *catalog.Webhook) string {
	block := fmt.Sprintf("webhook %s {\nurl = %s\nsecret = %s\n", Quote(w.Name), Quote(w.URL),
		oneOrList(secretTexts(w.Secrets)))
	if w.Events != nil {
		block += "events = " + QuoteList(w.Events) + "\n"
	}
	if w.Projects != nil {
		block += "projects = " + QuoteList(w.Projects) + "\n"
	}
	if !w.Active {
		block += "active = false\n"
	}
	return formattedBlock(block + "}\n")
}

// AddWebhook appends a webhook to the file.
func AddWebhook(src []byte, w *catalog.Webhook) ([]byte, error) {
	return AppendBlock(src, WebhookBlock(w))
}

// RemoveWebhook removes the webhook with the name, see RemoveBlock.
func RemoveWebhook(src []byte, name string) ([]byte, error) {
	return RemoveBlock(src, "webhook", name)
}

// ChangeWebhook turns the block of was into want, which has its name.
func ChangeWebhook(src []byte, was, want *catalog.Webhook) ([]byte, error) {
	return editBlock(src, BlockPath{"webhook", was.Name}, func(s *site) error {
		if was.URL != want.URL {
			if err := s.set("url", Quote(want.URL)); err != nil {
				return err
			}
		}
		if !slices.Equal(was.Secrets, want.Secrets) {
			if err := s.setList("secret", secretTexts(want.Secrets), oneOrList); err != nil {
				return err
			}
		}
		err := errors.Join(s.changeList("events", was.Events, want.Events),
			s.changeList("projects", was.Projects, want.Projects))
		if err != nil {
			return err
		}
		if was.Active != want.Active {
			return s.set("active", strconv.FormatBool(want.Active))
		}
		return nil
	})
}

// secretTexts returns secrets as HCL.
func secretTexts(list []catalog.Secret) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		if s.Source == catalog.SecretPlain { // one that the file has already
			texts[i] = Quote(s.Ref)
			continue
		}
		texts[i], _ = fieldText(catalog.Field{Value: &s})
	}
	return texts
}

// oneOrList is listText, but a single element stands alone.
func oneOrList(elements []string) string {
	if len(elements) == 1 {
		return elements[0]
	}
	return listText(elements)
}

// setList notes the edits that turn the list of an attribute into elements, which are HCL. In a list of several lines, or
// with comments, elements that stay keep their places. text returns the value where the list is replaced as a whole.
func (s *site) setList(name string, elements []string, text func([]string) string) error {
	attr := s.block.Body.Attributes[name]
	var list *hclsyntax.TupleConsExpr
	if attr != nil {
		list, _ = hclfile.Unparen(attr.Expr).(*hclsyntax.TupleConsExpr)
	}
	if list == nil || s.oneLine || !s.d.spread(list) {
		return s.set(name, text(elements))
	}
	value, err := parseExpression(name, listText(elements))
	if err != nil {
		return err
	}
	parts, stays := s.d.listSplices(list, value, elements)
	if !stays {
		return s.set(name, text(elements))
	}
	s.replace(attr, value)
	if s.parts == nil {
		s.parts = map[*hclsyntax.Attribute][]splice{}
	}
	s.parts[attr] = parts
	return nil
}
