// Package login lets people sign in at the OpenID Connect providers that login blocks declare (configsrc/login.md): the
// authorization code flow with PKCE, state and nonce.
//
// What it promises. Nothing waits for a provider but the sign-in of one person: discovery runs with the first sign-in,
// and again with the next one after a failure. A flow belongs to one browser and one login block, ends after 10
// minutes, and is finished once; a browser may have one in each of five tabs. Beyond 10,000 flows, the peer with the
// most loses its oldest. What a provider says about a person counts only from an ID token that go-oidc has verified,
// with the nonce of this flow, a subject, and no other party that it was issued to; userinfo adds claims, and changes
// none. No token and no secret is in a message or in the log.
//
// What it needs. The login blocks, live, and functions that open their secrets and read their certificates. Each
// request to a provider asks a publicnet.Guard about the connection, follows no redirect, uses no proxy, takes 1 MiB at
// most, and ends after 10 s; so does each endpoint that discovery names.
//
// What it does not do. It decides no right: see catalog.Login.Grants. It knows no session and no page, refreshes no
// token, and ends no session because a provider has ended one.
package login
