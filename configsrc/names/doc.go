// Package names has the rules between names of different projects: which domain a key may declare, which wildcards lie
// above which domains, and which slug was probably meant.
//
// SettleProofs and MayProve decide what such a key's change makes of the proofs of domains, and what it may not say.
// MayClaim decides for a key that is limited to projects, so that it cannot take over traffic of a project that it does
// not reach. For files, which a person reviews, the same case is a warning. Warnings keeps the warnings about wildcards
// above names of other projects, and about keys with a slug that no project has, in step with what is accepted: each
// commit costs in proportion to the names that it changes, with any number of others. Overlap and UnknownSlug make the
// two warnings, and Foresee says which a change would bring. Above yields the wildcards that cover a name. NearSlug and
// Near find what a misspelt slug or word was meant to be, without a walk over all slugs.
//
// The package looks names up in a Declared, which may be the resolver or a proposal over it, and asks an Owner which
// file declares one. It does not decide between two files that declare the same name: that is configsrc's part.
package names
