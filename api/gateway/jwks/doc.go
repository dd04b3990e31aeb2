// Package jwks keeps the key sets that projects name with jwks_url (configsrc/tokens.md).
//
// What it promises. No request waits for a provider: KeySet answers from memory, and fetches run in the background, at the
// start, every hour, and for a token that names an unknown key, at most once a minute for each project. The last good set
// of an address stays in use while the provider is away, also over a restart: the ledger of this node has it. Another
// address begins without keys. A set over its bounds is refused whole, an unfit key alone.
//
// What it needs. To be told which project names which address, and to run. Addresses are chosen by tenants: the client
// asks a publicnet.Guard about each connection, follows no redirect, uses no proxy, and ends after 10 s.
//
// What it does not do. It verifies no token. Nodes do not share sets: an edge fetches for itself, as an authority does, and
// keeps them in its own data folder.
//
// Projects that name the same address share its set and its fetches, but not their minutes. Fetches have sixteen places
// with a share for each provider (host and port), so that a slow one does not delay the others.
package jwks
