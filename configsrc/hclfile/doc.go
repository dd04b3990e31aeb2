// Package hclfile reads the config files: bytes to catalog nouns, and diagnostics about the bytes.
//
// Decode reads one file and reports every problem in it at once, each with its position, its source line and a
// correction (configsrc/README.md). One decoder serves validate, a reload and an API write. Format is the canonical
// layout that "fingerpost fmt" writes. Redact returns a file without its secrets. Diagnostics are written as text, as
// annotations of GitHub, and as SARIF. DecodeProject and DecodeDefaults read one block of an accepted file, where a page
// shows one project of many. Explain says where each value of a project comes from.
//
// Hostile bytes are safe to read. Size, encoding, nesting, tokens and the length of texts are checked before the
// recursive parser runs, because an overflow of its stack ends the process. Values are read from literal syntax nodes;
// nothing is ever evaluated, because 22 bytes of an expression can keep a core busy for half a minute. No diagnostic
// shows a secret.
//
// The package never touches a disk. Template bodies that a file takes by file("…") come through Options.ReadFile.
//
// Package hcledit edits what this package reads. It uses Parse and Result.Source, which give it a Source (bytes,
// tokens, syntax tree and the canonical form of values), and the small rules that both share: InOrder, Unparen,
// EndsLine, SameTokens, Heavy, Unprintable and Quoted. Only these two packages import hcl.
//
// hclfile does not compare files with each other (package configsrc does), or open sealed values. Only Explain applies
// the defaults block.
//
// All functions are pure and safe for concurrent use. A Result and its Declared belong to one owner; a Source caches
// its tokens and is for one goroutine at a time.
package hclfile
