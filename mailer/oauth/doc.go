// Package oauth gets access tokens for SMTP servers that take no passwords (RFC 6749 4.4, client credentials).
//
// What it promises. A token is in memory only, and is used until shortly before its end, an hour at most; then the next
// caller asks for another one. Callers that need the token of one account at the same time share one question. An account
// whose token server is slow delays no other account. Of what accounts share, the number of kept tokens alone is bounded:
// beyond it, an account whose token was dropped asks for another one. Errors hold no token and no secret of the account,
// except in Description, which is what the token server said.
//
// What it needs. The address of a token endpoint, which a tenant has chosen: it begins with https, publicnet.Guard is
// asked about each connection, redirects are refused, no proxy is used, an answer has 64 KiB at most, and all of it ends
// after ten seconds.
//
// What it does not do. It asks for nothing before a caller needs it, tries nothing again, keeps nothing on disk, and logs
// nothing. It does not know SMTP: package smtp decides what follows from an Error.
//
// golang.org/x/oauth2 writes the request and reads the answer. It sends the credentials in the header, and once more in
// the form if the server refuses the first.
package oauth
