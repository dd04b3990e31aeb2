// Package compare says what differs between two states of the config folder: which projects, whether anything else, and
// which lines.
//
// A Difference is a list of files with their contents before and after, and readers of all other files of both states,
// which may be commits. Weigh decodes the files concerned and returns their Weight: the projects that differ in anything
// that they declare, mail bodies in files of their own included, and whether it touches what belongs to no project. It
// never counts too little: a file that differs in comments alone counts as a change of all that it declares, and what
// does not decode touches the rest. So a Weight decides whether a key that is limited to projects may see or make the
// change (Weight.Within).
//
// Diff prints the changed lines of files as a unified diff. No secret is ever in it: lines are compared as they stand,
// so that a changed secret shows up, and printed as hclfile.Masked has them.
//
// The package reads through the functions that it is given. It does not know the table of accepted files, names no
// file's owner, and judges nothing: whether a change fits what is live is configsrc's part.
package compare
