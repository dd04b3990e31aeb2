// Package hclfile is the codec of the config files: bytes to catalog nouns, and small edits of the bytes. It never
// touches a disk; the one thing that it asks for, the text behind file("…"), comes through Options.ReadFile.
//
// Decode reads one file and reports every problem in it at once, each with its place, its source line and what would
// be right (configsrc/README.md, Language and Problems). It is safe on hostile bytes: size, encoding, nesting and number of foreign
// tokens are checked before the recursive parser runs, and values are read off literal syntax nodes only; nothing is ever
// evaluated. No diagnostic shows a secret.
//
// The edits (AppendBlock, InsertBlock, RemoveBlock, SetAttribute, RemoveAttribute, RenameLabel, and a Draft, which takes
// many for one parse) splice bytes by source range: whatever they are not about stays as it is, byte for byte. Each result
// is parsed and compared with what was meant, so that a mistake here becomes an error and not a damaged file. Of the
// result only the lines that were edited are parsed where that gives the tree that a parse of the whole would give, see
// parseEdited; Parsed keeps a tree for the next edit of the same bytes.
//
// All functions are pure and safe for concurrent use; a Result, its Declared, a Parsed and a Draft are for one owner.
package hclfile
