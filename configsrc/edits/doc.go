// Package edits makes of an edit the files as they would be, and says whether they would be accepted. It changes no
// file.
//
// A Writer takes a catalog.Edit: a project, key or webhook that a client creates, changes or removes. It locks the
// files, reads what is on the disk now, changes the text (attempt.go, and a file for each kind of target), and proves
// that the new bytes decode to the intended change and no other. What comes out is an Update: new contents of one or
// more files, which are put in place together or not at all. Submit gets it. Base.Admit judges an Update against all
// other files, Describe does so for a dry run, and Clashes says which Updates cannot be put in place at the same time.
//
// An Overlay makes the same edits on the files of a proposal's branch, and JudgeDifference says whether what a branch
// changes would be accepted now. Origins say in which file a value stands.
//
// What it promises. An Update has the wanted change and nothing else, or there is an error and nothing was changed. All
// errors for a client are *catalog.Error; they name files below the config folder, and a key that is limited to
// projects learns of no other project. A person's expression is never overwritten unless the edit says so, and secrets
// come out sealed. Writes to one file come one after the other.
//
// What it needs. A Base, which is what is accepted: its owner, the goroutine that looks, keeps it in step with the
// store. A Workspace reads the files and holds the new ones; Submit puts them in place. Both belong to package
// configsrc.
//
// What it does not do. It places and commits nothing, waits for no git, and knows neither HTTP nor the Journal. It
// keeps nothing but the decoded forms of the files that were written last (decodedfiles.go), which make the next write
// cheaper.
package edits
