// Package offline loads the config folder without a server: for validate, plan, doctor and the other commands.
//
// Check judges the files as a service with an empty store does, with configsrc.Judge; CheckWith does so as if some files
// had other contents, against the store of a service, or with its flags. The result is Checked: the files without errors,
// with what they declare, those with errors, and all problems. To those of the judge it adds the warnings that need all
// files: wildcards above names of other projects, lists with a slug that no project has, and projects that cannot
// send mail through the relay that they count on. Line and Explain give the places of objects and values.
//
// It changes nothing, starts nothing and opens no secret. It decides nothing of its own about a file: a check that
// refuses one is in configsrc or hclfile, so that a folder that passes here is one that a service accepts. A Checked is
// not safe for concurrent use, because it decodes files again when a place is asked for.
package offline
