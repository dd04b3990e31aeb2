// Package seal encrypts secrets so that they can stand in config files and in git: age with X25519 keys, one value at a
// time, base64 on one line. Whoever has a recipient ("age1…", public) can seal; only whoever has the identity file can
// open.
//
// A sealed value works only where it was made for. age has no associated data, so the context (the owning project's uuid
// and the field) is sealed together with the value and compared on Open: nobody who can edit files can move one
// project's password to a host of his own (configsrc/README.md, Write-back).
//
// Errors never quote a secret, sealed or plain, and name paths as they were given. Everything here is safe for
// concurrent use.
package seal
