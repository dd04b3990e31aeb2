// Package catalog is the ground floor: the nouns that fingerpost serves, the rules that they obey and the identity
// that follows from what is declared.
//
// Nothing here does I/O and nothing here is safe for concurrent writing: values are built, validated and then only read.
// There is one set of rules for files and API: a noun's Validate reports Problems whose Path is the API's field name;
// hclfile finds the source range of that field, and api turns it into details.
//
// A noun lists its attributes once, in Fields. The HCL decoder, the store's codec and the merge with the defaults block
// all walk that list, so that a new attribute is one line.
package catalog
