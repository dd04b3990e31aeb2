package catalog

import "strings"

// SecretSource is where a secret's plain value comes from.
type SecretSource uint8

// The ways to give a secret (configsrc/README.md, Language).
const (
	SecretNone   SecretSource = iota // not given
	SecretPlain                      // in clear text in the file: a warning, or an error with sealing { require = true }
	SecretEnv                        // env("NAME")
	SecretFile                       // file("path")
	SecretSealed                     // sealed("…"), age
)

// A Secret is how a secret is given, not its value, unless that is in the file in clear text. It prints as its source
// only, so that a stray %v in a log line reveals nothing.
type Secret struct {
	_      struct{} `cbor:",toarray"`
	Source SecretSource
	Ref    string // the variable, the path, the sealed text or the plain value
}

// String never shows Ref of a plain or sealed secret.
func (s Secret) String() string {
	switch s.Source {
	case SecretNone:
		return "none"
	case SecretEnv:
		return "env(" + s.Ref + ")"
	case SecretFile:
		return "file(" + s.Ref + ")"
	case SecretSealed:
		return "sealed"
	}
	return "plain"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// SealField names the field of a request that has a new value of a secret take the place of a call in the file.
func SealField(secret string) string { return "seal" + strings.ToUpper(secret[:1]) + secret[1:] }
