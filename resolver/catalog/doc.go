// Package catalog holds the nouns that fingerpost serves, their rules, and the identity that follows from a
// declaration.
//
// It does no I/O, and its values are not safe for concurrent writing: they are built, validated and then only read.
// Files and API share one set of rules: a noun's Validate reports Problems whose Path is the API's field name; hclfile
// finds the source range of that field, and api turns it into details.
//
// A noun lists its attributes once, in Fields; AllFields adds what its block's label says. The HCL decoder, the merge
// with the defaults block, requests and forms walk that list, and Changes describes every difference by it: the audit
// trail, plans, commit subjects, the permission for a proposal and the console's sentences are made from Changes. A new
// attribute is a field of the noun's struct and a line in its list; limits are a rule in Validate, and a value that is no
// plain one a copy in Declared.Clone. Tests ask for its row in configsrc/README.md and in api/openapi.yaml.
//
// The tag of a noun's blank field makes the store keep the noun as an array of its fields, in their order. So a new or
// moved field is a new layout of the store; a test in package store asks for its version.
package catalog
