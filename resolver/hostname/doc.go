// Package hostname knows the one form in which fingerpost stores, compares and answers the name of a host.
//
// What it promises. Two spellings of one name have one canonical form: lower case, without port and trailing dot, labels
// beyond ASCII as IDNA writes them (UTS 46, as browsers apply it, with the bidi and joiner rules). Append is for the resolve
// path: it makes the form on the caller's stack and does not allocate. Parse, Canonical and ParseDomain are for what people
// write, and refuse what no host name has (RFC 1035, RFC 1123); their errors complete the sentence "the domain …".
// NextWildcard walks from a name to the wildcards that cover it, the nearest first. MixedScript finds a name that looks
// like another one, and the public suffix list says below which name anybody may register.
//
// What it needs. Nothing but golang.org/x/net.
//
// What it does not do. It asks no DNS, and keeps nothing: all functions may be called from any goroutine.
package hostname
