package hclfile

import (
	"encoding/base64"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// functions are all functions of the language, with an example of each.
var functions = []string{"trimsuffix", "env", "file", "sealed"}

var functionUse = map[string]string{
	"trimsuffix": `trimsuffix(<<-EOT … EOT, "\n") stands around a heredoc whose text has no final newline, and nowhere else`,
	"env":        `env("NAME") is for the attributes password, jwt_secret, secret and client_secret only: all else must be the same on every node`,
	"sealed":     `sealed("…") is for the attributes password, jwt_secret, secret and client_secret only`,
	"file":       `file("path") is for the attributes password, jwt_secret, jwt_keys, secret, client_secret, body_html and body_text only`,
}

// misplacedCall reports a function that is unknown, or not allowed for this attribute.
func (d *decoder) misplacedCall(attr string, call *hclsyntax.FunctionCallExpr) {
	use, known := functionUse[call.Name]
	if !known {
		if d.hidden(call.NameRange) { // an unquoted password may look like a call
			d.errorf(call.NameRange, "unknown function", "%s", joinLines(didYouMean(call.Name, functions),
				"there are env, file and sealed; "+literalsOnly))
			return
		}
		detail := "there are trimsuffix, env, file and sealed; " + literalsOnly
		d.errorf(call.NameRange, "unknown function "+Quoted(call.Name), "%s", joinLines(didYouMean(call.Name, functions),
			detail))
		return
	}
	d.errorf(call.Range(), call.Name+"() cannot stand here: attribute "+Quoted(attr), "%s", use)
}

// argument returns the one literal string that env, file and sealed take.
func (d *decoder) argument(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 1 || call.ExpandFinal {
		d.errorf(call.Range(), call.Name+"() takes one string", "%s", functionUse[call.Name])
		return "", false
	}
	v, ok := d.literal(call.Args[0])
	if !ok || v.text == nil {
		if t, isTemplate := Unparen(call.Args[0]).(*hclsyntax.TemplateExpr); isTemplate {
			d.interpolation(t)
			return "", false
		}
		d.errorf(call.Args[0].Range(), call.Name+"() takes a string, found "+found(call.Args[0]), "%s", literalsOnly)
		return "", false
	}
	return *v.text, true
}

// trimmed reads trimsuffix(heredoc, "\n").
func (d *decoder) trimmed(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 2 || call.ExpandFinal {
		d.errorf(call.Range(), `trimsuffix() takes a heredoc and "\n"`, "%s", functionUse[call.Name])
		return "", false
	}
	text, ok := trimmedText(d.Source, call)
	if ok {
		return text, true
	}
	if t, isTemplate := Unparen(call.Args[0]).(*hclsyntax.TemplateExpr); isTemplate {
		if _, plain := d.literalText(t); !plain {
			d.interpolation(t)
			return "", false
		}
	}
	d.errorf(call.Range(), `trimsuffix() takes a heredoc and "\n"`, "%s", functionUse[call.Name])
	return "", false
}

// trimmedText returns the value of a well-formed trimsuffix call.
func trimmedText(s *Source, call *hclsyntax.FunctionCallExpr) (string, bool) {
	if call.Name != "trimsuffix" || len(call.Args) != 2 || call.ExpandFinal {
		return "", false
	}
	heredoc := Unparen(call.Args[0])
	text, ok := s.literal(heredoc)
	suffix, ok2 := s.literal(call.Args[1])
	if !ok || !ok2 || text.text == nil || suffix.text == nil || *suffix.text != "\n" || !s.isHeredoc(heredoc) {
		return "", false
	}
	return strings.TrimSuffix(*text.text, "\n"), true
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reads a password, a jwt_secret, or a secret of a webhook, login or inbound block.
func (d *decoder) secret(attr string, e hclsyntax.Expression, to *catalog.Secret) bool {
	expr := Unparen(e)
	call, isCall := expr.(*hclsyntax.FunctionCallExpr)
	if isCall && call.Name != "trimsuffix" {
		return d.secretCall(attr, call, to)
	}
	text, ok := d.stringValue(attr, expr, wantSecret)
	if !ok {
		return false
	}
	if text == "" {
		d.errorf(expr.Range(), attr+": must not be empty", "to set none, leave the line out")
		return false
	}
	d.res.PlainSecret = true
	d.warn(RuleClearTextSecret, expr.Range(), "a secret stands in the file in clear text", "use env(), file() or sealed()")
	*to = catalog.Secret{Source: catalog.SecretPlain, Ref: text}
	return true
}

func (d *decoder) secretCall(attr string, call *hclsyntax.FunctionCallExpr, to *catalog.Secret) bool {
	var source catalog.SecretSource
	var wrong func(string) string
	switch call.Name {
	case "env":
		source, wrong = catalog.SecretEnv, func(s string) string {
			if envName.MatchString(s) {
				return ""
			}
			return "env() takes the name of a variable: letters, digits and underscores"
		}
	case "file":
		source, wrong = catalog.SecretFile, checkPath
	case "sealed":
		source, wrong = catalog.SecretSealed, func(s string) string {
			if _, err := base64.StdEncoding.Strict().DecodeString(s); err != nil || s == "" || strings.ContainsAny(s, "\r\n") {
				return `sealed() takes what "fingerpost secrets seal" prints: base64 on one line`
			}
			return ""
		}
	default:
		d.misplacedCall(attr, call)
		return false
	}
	text, ok := d.argument(call)
	if !ok {
		return false
	}
	if msg := wrong(text); msg != "" {
		d.errorf(call.Args[0].Range(), msg, "")
		return false
	}
	*to = catalog.Secret{Source: source, Ref: text}
	return true
}

// checkPath returns what is wrong with the path of a file below the config folder (or, for secrets, below
// --secrets-dir), or "".
func checkPath(p string) string {
	switch {
	case p == "":
		return "the path is empty"
	case strings.Contains(p, `\`):
		return "write the path with forward slashes"
	case strings.HasPrefix(p, "/") || len(p) > 1 && p[1] == ':':
		return "the path must be relative to the folder, not absolute"
	case strings.ContainsFunc(p, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "the path holds a control character"
	case !fs.ValidPath(path.Clean(p)) || path.Clean(p) == ".":
		return "the path leads out of the folder"
	case path.Clean(p) != p:
		return "write the path without . and .. and doubled slashes: " + path.Clean(p)
	}
	return ""
}
