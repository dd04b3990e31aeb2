package form

import (
	"regexp"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// call finds the call that gives an attribute on its line.
var call = regexp.MustCompile(`^\s*\w+\s*=\s*((?:env|file)\("[^"]*"\))`)

// OwnSecrets reports whether the project's block gives a secret of the form.
func (f *Form) OwnSecrets() bool {
	for i := range f.Fields {
		if x := &f.Fields[i]; x.Type == "password" && x.own {
			return true
		}
	}
	return false
}

// Calls notes which secrets are given by a call in the project's block, from the environment or from a file.
func (f *Form) Calls(block *client.Block, origins catalog.Origins) {
	lines := strings.Split(block.Text, "\n")
	for i := range f.Fields {
		x := &f.Fields[i]
		o := origins[x.Name]
		at := o.Line - block.Line
		if x.Type != "password" || !x.own || o.File != block.File || at < 0 || at >= len(lines) {
			continue
		}
		if m := call.FindStringSubmatch(lines[at]); m != nil {
			x.Call = m[1]
		}
	}
}

// From says where a call takes its value from.
func (x Field) From() string {
	name := strings.Split(x.Call, `"`)[1]
	if strings.HasPrefix(x.Call, "env") {
		return "the environment variable " + name + " of the server"
	}
	return "the file " + name
}

// sealed reports whether each secret that is to be sealed has been entered.
func (f *Form) sealed() bool {
	ok := true
	for i := range f.Fields {
		if x := &f.Fields[i]; x.Seals && x.Text == "" {
			x.Error, ok = "type the value that is sealed", false
		}
	}
	return ok
}
