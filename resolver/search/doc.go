// Package search finds documents by a part of their texts, by exact terms, or by both. It serves the lists of projects
// and domains (api/README.md, Search).
//
// # What it promises
//
// A document has a key, further texts, and terms. A text query finds the documents of which the key or a text contains
// it, in any case. Documents whose key begins with it come first, then those of which another text does, then the rest;
// equals are ordered by key. It finds at most MaxMatches. A query without text finds all documents that have the terms,
// by ascending id, and counts them all.
//
// # How it works
//
// An Index is immutable. It is one text: that of all documents, in lower case, ordered by key, each text between two zero
// bytes. A query scans it for its rarest byte; the beginnings of texts are known by their first byte. With hides the
// documents of some projects and keeps their new ones in a second, small text. When that has grown, Worn says that it is
// time for a new Index.
//
// A list (a query without text) is kept until the Index is replaced, so that a page costs what its rows cost. Eight lists
// are kept, the first that are asked for. A tenant whose labels fill them costs the others 2 ms a page at 100,000
// projects.
//
// # What it costs
//
// The time of a query grows with the number of documents: see BenchmarkSearch of package resolver, with 100,000
// projects and 300,000 domains. An index of trigrams answers rare texts in microseconds with any number of them; it was
// left out because it takes twice the memory, a second of one core to make, and 500 lines.
package search
