package hcledit

import (
	"strings"

	"fingerpost/resolver/catalog"
)

// LoginBlock returns the block that declares l, formatted. Its secret must not be in clear text.
func LoginBlock(l *catalog.Login) string {
	var b strings.Builder
	b.WriteString("login " + Quote(l.Name) + " {\n" + attributeLines(loginAttributes(l)))
	for i := range l.Rules {
		b.WriteString("\nrule {\n" + attributeLines(ruleAttributes(&l.Rules[i])) + "}\n")
	}
	return formattedBlock(b.String() + "}\n")
}

func loginAttributes(l *catalog.Login) []attribute {
	secret := attribute{name: "client_secret"}
	if l.ClientSecret.Source != catalog.SecretNone {
		secret = secretsAttribute(secret.name, []catalog.Secret{l.ClientSecret})
	}
	return []attribute{textAttribute("issuer", l.Issuer), textAttribute("client_id", l.ClientID), secret,
		listAttribute("scopes", l.Scopes), optionalText("label", l.Label), optionalText("ca_file", l.CAFile)}
}

func ruleAttributes(r *catalog.LoginRule) []attribute {
	return []attribute{textAttribute("claim", r.Claim), textAttribute("value", r.Value),
		listAttribute("allow", r.Allow.Words()), listAttribute("projects", r.Projects)}
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
