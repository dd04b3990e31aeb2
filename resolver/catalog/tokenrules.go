package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// TokenRules say which tokens of a project's users are good (configsrc/tokens.md).
type TokenRules struct {
	_          struct{} `cbor:",toarray"`
	Algorithms []string
	Keys       []string // texts for ParsePublicKey, or the FileText of a file with one
	Issuer     *string  // the iss of tokens; nil: that of the service
	Audience   *string  // is among the aud of tokens; nil: any
	KeySetURL  *string  // where the JWK set is; nil: nowhere
}

// Fields lists the attributes. The first three go together: a block that has one of them inherits none of the others.
func (r *TokenRules) Fields() []Field {
	const keys = "keys of tokens"
	return []Field{
		{Name: "jwtAlgorithms", Value: &r.Algorithms, OneOf: TokenAlgorithms, FileOnly: true, Own: true, Together: keys,
			Label: "Algorithms of the tokens", Group: "Which tokens are good"},
		{Name: "jwtKeys", Value: &r.Keys, Files: true, FileOnly: true, Own: true, Together: keys,
			Label: "Public keys of the tokens"},
		{Name: "jwksUrl", Value: &r.KeySetURL, FileOnly: true, Own: true, Together: keys, Label: "Address of the key set"},
		{Name: "jwtIssuer", Value: &r.Issuer, FileOnly: true, Own: true, Label: "Issuer of the tokens"},
		{Name: "jwtAudience", Value: &r.Audience, FileOnly: true, Own: true, Label: "Audience of the tokens"},
	}
}

// Clone returns a copy of r that shares no memory with it.
func (r *TokenRules) Clone() TokenRules {
	c := *r
	c.Algorithms, c.Keys = slices.Clone(r.Algorithms), slices.Clone(r.Keys)
	c.Issuer, c.Audience, c.KeySetURL = clone(r.Issuer), clone(r.Audience), clone(r.KeySetURL)
	return c
}

// NewTokenRules returns the built-in rules: HS256.
func NewTokenRules() TokenRules { return TokenRules{Algorithms: []string{AlgorithmHS256}} }

// Asymmetric reports whether there are algorithms with public keys.
func (r *TokenRules) Asymmetric() bool {
	return slices.ContainsFunc(r.Algorithms, func(a string) bool { return a != AlgorithmHS256 })
}

// OwnRules reports whether the issuer, and the audience or the keys, are those of the block itself: only then is a
// token good that names no project.
func (a *AuthSettings) OwnRules() bool {
	own := map[string]bool{}
	for i, f := range a.Fields() {
		own[f.Name] = a.Said.Has(i)
	}
	r := &a.Rules
	return own["jwtIssuer"] && r.Issuer != nil && (own["jwtAudience"] && r.Audience != nil ||
		own["jwtKeys"] && len(r.Keys) > 0 || own["jwksUrl"] && r.KeySetURL != nil)
}

// FileText returns the element of TokenRules.Keys for file("path").
func FileText(path string) string { return `file("` + path + `")` }

// FilePath returns the path of a FileText; is is false for any other text.
func FilePath(text string) (path string, is bool) {
	path, is = strings.CutPrefix(text, `file("`)
	if is {
		path, is = strings.CutSuffix(path, `")`)
	}
	return path, is
}

const maxTokenName = 1024 // bytes of an issuer or audience

var keySetURL = urlRule{field: "jwksUrl", flag: "--jwks-allow", example: "https://login.acme.example/jwks",
	noUser: "key sets are public"}

// Validate checks the values of one block. allow is as in Webhook.Validate. No problem quotes a key.
func (r *TokenRules) Validate(allow *HTTPAllow) Problems {
	var ps Problems
	if len(r.Algorithms) == 0 {
		ps.Addf("jwtAlgorithms", "is empty: name some of %s, or leave the line out for HS256",
			strings.Join(TokenAlgorithms, ", "))
	}
	for i, a := range r.Algorithms {
		if !slices.Contains(TokenAlgorithms, a) {
			ps.Addf("jwtAlgorithms", "must have some of %s", strings.Join(TokenAlgorithms, ", "))
		} else if slices.Contains(r.Algorithms[:i], a) {
			ps.Addf("jwtAlgorithms", "%q is in the list twice", a)
		}
	}
	r.validateKeys(&ps)
	if r.KeySetURL != nil {
		keySetURL.check(&ps, *r.KeySetURL, allow)
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"jwtIssuer", r.Issuer}, {"jwtAudience", r.Audience}} {
		if f.value != nil && (*f.value == "" || len(*f.value) > maxTokenName) {
			ps.Addf(f.name, "must have 1 to %d bytes; leave the line out for none", maxTokenName)
		}
	}
	return ps
}

func (r *TokenRules) validateKeys(ps *Problems) {
	both := len(r.Keys) > 0 && r.KeySetURL != nil
	switch {
	case both:
		ps.Addf("jwksUrl", "and jwt_keys exclude each other: leave one of them out")
	case r.Asymmetric() && len(r.Keys) == 0 && r.KeySetURL == nil:
		ps.Addf("jwtAlgorithms", "needs jwt_keys or jwks_url in the same block, for every algorithm but HS256")
	case r.KeySetURL != nil && len(r.Algorithms) > 0 && !r.Asymmetric():
		ps.Addf("jwksUrl", `is not used: jwt_algorithms in the same block has no algorithm with public keys, such as "RS256"`)
	case len(r.Keys) > 0 && len(r.Algorithms) > 0 && !r.Asymmetric():
		ps.Addf("jwtKeys", `is not used: jwt_algorithms in the same block has no algorithm with public keys, such as "RS256"`)
	case len(r.Keys) > MaxPublicKeys:
		ps.Addf("jwtKeys", "has %d keys, %d are allowed", len(r.Keys), MaxPublicKeys)
		return
	}
	if !r.Asymmetric() {
		return
	}
	for i, text := range r.Keys {
		if _, file := FilePath(text); file {
			continue
		}
		if _, err := r.Key(text); err != nil {
			ps.Addf("jwtKeys", "entry %d %v", i+1, err)
		}
	}
}

// Key reads the text of a key, which must be for one of the algorithms.
func (r *TokenRules) Key(text string) (*PublicKey, error) {
	k, err := ParsePublicKey(text)
	if err == nil && !slices.Contains(r.Algorithms, k.Algorithm) {
		return nil, fmt.Errorf("is a key for %s, which jwt_algorithms of the same block does not have", k.Algorithm)
	}
	return k, err
}
