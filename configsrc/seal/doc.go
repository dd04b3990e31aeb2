// Package seal encrypts secrets for config files and git: age with X25519 keys, one value at a time, base64 on one
// line. A recipient ("age1…", public) is enough to seal; opening needs the identity file.
//
// A sealed value works only where it was made for. age has no associated data, so the context (the owner's
// uuid and the field) is sealed together with the value and compared on Open: a person who can edit files cannot move
// one project's password to another host (configsrc/README.md, Write-back).
//
// Secrets opens a secret wherever a file says that it is: sealed, in the environment, in a file, or in clear text.
// Fields and Values say which attributes can be sealed, and which values of a file are.
//
// Errors never quote a secret, sealed or plain, and name paths as they were given. Everything here is safe for
// concurrent use.
package seal
