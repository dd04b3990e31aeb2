// Package gateway reads what gateways ask, and verifies the tokens that they pass on: the rules behind /check, /ask and
// /api/auth/me (api/README.md, Gateways and Tokens). README.md has the lines for each gateway.
//
// Every parameter that a call does not know is a problem: a typo in "auth" must not let everybody in, and a gateway that
// passes on the query of its client must not be found out by an attacker first. A token is good only if it is signed
// with HS256 and the secret of the project, names that project, and is valid now.
//
// The package answers nothing and knows no keys, no projects and no secrets. It is the only importer of jwt.
package gateway
