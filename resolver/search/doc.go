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
// An Index is immutable, so that a search takes no lock. Its base holds the documents by key, with a posting list for
// each sequence of three bytes that occurs in a text (a trigram). A query reads the shortest posting list of its own
// trigrams and compares the texts of the documents in it, in their order, until it has MaxMatches. Each text stands
// between two zero bytes, so the beginning of a text is a part of the text as well. A query of one or two bytes uses
// the lists of all trigrams that begin with it.
//
// With replaces the documents of some projects: it marks the old ones in the base as dead and keeps the new ones in a
// list that every query compares one by one. When this list is long, Worn says that it is time for a new Index.
//
// # What it costs
//
// With 100,000 projects and 300,000 domains the two indexes take about 40 MiB, and 1 to 2.5 s of one core to make (AMD
// EPYC). First pages then take 0.01 to 1 ms, a twentieth of a page of the list of projects at most (BenchmarkSearch of
// package resolver).
package search
