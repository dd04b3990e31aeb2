package hcledit

import (
	"strings"

	"fingerpost/resolver/catalog"
)

// LoginBlock returns the block that declares l, formatted. Its secret must not be in clear text.
func LoginBlock(l *catalog.Login) string {
	var b strings.Builder
	b.WriteString("login " + Quote(l.Name) + " {\n")
	for _, a := range loginAttributes(l) {
		if a.expr != "" {
			b.WriteString(a.name + " = " + a.expr + "\n")
		}
	}
	for i := range l.Rules {
		b.WriteString("\nrule {\n")
		for _, a := range ruleAttributes(&l.Rules[i]) {
			if a.expr != "" {
				b.WriteString(a.name + " = " + a.expr + "\n")
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\n")
	return formattedBlock(b.String())
}

// An attributeText is an attribute with its value as HCL, "" for none.
type attributeText struct{ name, expr string }

func loginAttributes(l *catalog.Login) []attributeText {
	secret := ""
	if l.ClientSecret.Source != catalog.SecretNone {
		secret = secretTexts([]catalog.Secret{l.ClientSecret})[0]
	}
	return []attributeText{{"issuer", Quote(l.Issuer)}, {"client_id", Quote(l.ClientID)}, {"client_secret", secret},
		{"scopes", listOrNone(l.Scopes)}, {"label", quoteOrNone(l.Label)}, {"ca_file", quoteOrNone(l.CAFile)}}
}

func ruleAttributes(r *catalog.LoginRule) []attributeText {
	return []attributeText{{"claim", Quote(r.Claim)}, {"value", Quote(r.Value)}, {"allow", QuoteList(r.Allow.Words())},
		{"projects", listOrNone(r.Projects)}}
}

func listOrNone(list []string) string {
	if list == nil {
		return ""
	}
	return QuoteList(list)
}

func quoteOrNone(text string) string {
	if text == "" {
		return ""
	}
	return Quote(text)
}

// AddLogin appends a login to the file.
func AddLogin(src []byte, l *catalog.Login) ([]byte, error) { return AppendBlock(src, LoginBlock(l)) }

// RemoveLogin removes the login with the name, see RemoveBlock.
func RemoveLogin(src []byte, name string) ([]byte, error) { return RemoveBlock(src, "login", name) }

// ChangeLogin turns the block of was into want, which has its name. With another number of rules, the block is replaced.
func ChangeLogin(src []byte, was, want *catalog.Login) ([]byte, error) {
	if len(was.Rules) != len(want.Rules) {
		src, err := RemoveLogin(src, was.Name)
		if err != nil {
			return nil, err
		}
		return AddLogin(src, want)
	}
	return editBlock(src, BlockPath{"login", was.Name}, func(s *site) error {
		if err := s.change(loginAttributes(was), loginAttributes(want)); err != nil {
			return err
		}
		for i, b := range s.block.Body.Blocks { // a login has no other blocks than rules
			if err := s.d.site(b).change(ruleAttributes(&was.Rules[i]), ruleAttributes(&want.Rules[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// change notes the edits of attributes whose values differ.
func (s *site) change(was, want []attributeText) error {
	for i, a := range want {
		switch {
		case a == was[i]:
		case a.expr == "":
			s.unset(a.name)
		default:
			if err := s.set(a.name, a.expr); err != nil {
				return err
			}
		}
	}
	return nil
}
