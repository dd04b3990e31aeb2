// Package hclfile is the codec of the config files: bytes to catalog nouns, and small edits of the bytes. It never
// touches a disk; the one thing that it asks for, the text behind file("…"), comes through Options.ReadFile.
//
// Decode reads one file and reports every problem in it at once, each with its place, its source line and what would
// be right (contract files.md 1 and 2). It is safe on hostile bytes: size, encoding, nesting and number of foreign
// tokens are checked before the recursive parser runs, and values are read off literal syntax nodes only; nothing is ever
// evaluated. No diagnostic shows a secret.
//
// The edits (AppendBlock, InsertBlock, RemoveBlock, SetAttribute, RemoveAttribute, RenameLabel, and a Draft, which takes
// many for one parse) splice bytes by source range: whatever they are not about stays as it is, byte for byte. Each result
// is parsed and compared with what was meant, so that a mistake here becomes an error and not a damaged file.
//
// All functions are pure and safe for concurrent use; a Result, its Declared and a Draft are for one owner.
package hclfile
