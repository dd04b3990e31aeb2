// Package gateway answers gateways: check, ask and me (api/README.md, Gateways and Tokens). A gateway asks before it
// routes a request (check), before it fetches a certificate (ask), and for the user behind a bearer token (me).
// README.md has the lines for each gateway. api/openapi.yaml describes the calls to clients.
//
// What it promises. check and ask have one handler and two doors: the listener for gateways, whose address is the
// credential, and the main listener, with a key. Their answers have no body, errors included; a header has the reason.
// Every parameter that check and ask do not know is a problem: a typo in "auth" must not let everybody in, and a gateway
// that passes on the query of its client must not be found out by an attacker first. A token is good only if it is
// signed with HS256 and the secret of the project, names that project, and is valid now. One that was verified before is
// not verified again, but its project, the secret and its times are compared at each request (verified.go).
//
// What it needs. The Live answers and the secrets that sign tokens, by an interface that it declares, and a Throttle for
// those who guess tokens. Package web reads the requests and writes the answers.
//
// What it does not do. It checks no key, and accepts no connection. The server admits peers by Options.MayAsk, and
// answers the plain checks of its fast path itself, with the Query that is read here. Package gateway is the only
// importer of jwt.
package gateway
