// Package hcledit makes small edits in config files, as a careful person would, and writes new files.
//
// An edit splices bytes by source range: SetAttribute, RenameLabel, AppendBlock and RemoveBlock make one edit each; a
// Draft collects many for one parse (RewriteProject, RemoveProject, ReplaceInLists). Everything else stays byte for
// byte: comments, order, blank lines, line endings, byte order mark. The lines around an edit are then laid out as
// Format does it: lines that were formatted stay formatted, all others keep their bytes.
//
// Each edit is proved once, by a model of the whole file:
//   - The functions for one edit parse their result and compare all values, blocks and comments with the intended ones.
//     A difference is ErrVerify, and nothing is returned.
//   - The caller of a Draft decodes the result and compares the nouns with those that it wants (package edits
//     does). That proof cannot see comments. Tests check that comments stay: random edits here, and the property test
//     of API writes in configsrc.
//
// Merge makes an edit on a content that has changed meanwhile, field by field, for git's rebase; Subject says in one line
// what an edit changes.
//
// AddKey, RotateKey and RemoveKey make the edits of keys, for the command line and for package edits.
//
// NewProject, WriteProject and WriteTemplates write whole files, Quote and Literal write values; each is read back
// before it is returned.
//
// The package needs a file that decodes without errors. It never touches a disk: Draft.Bodies lists the template bodies
// that the caller has to write into files of their own.
//
// All functions are pure and safe for concurrent use. A Draft is for one goroutine.
package hcledit
