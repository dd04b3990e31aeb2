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
// An Index is immutable, so that a search takes no lock. It is one text: that of all documents, in lower case, ordered
// by key, each text between two zero bytes, so that the beginning of a text is a part of it as well. A query scans it.
// With hides the documents of some projects and keeps their new ones in a second, small text. When that has grown, Worn
// says that it is time for a new Index.
//
// # What it costs
//
// The time of a query grows with the number of documents: see BenchmarkSearch of package resolver, with 100,000
// projects and 300,000 domains. An index of trigrams answers rare texts in microseconds with any number of them; it was
// left out because it takes twice the memory, a second of one core to make, and 500 lines.
package search
