// Package logs is the commands that show what has happened: "fingerpost logs", the mail log, and "fingerpost audit",
// the audit trail. Both select by project and time, print the newest entries with the latest one last, and go on with
// --follow.
//
// A running server is asked over its API. The audit trail can also be read from the store of a server that does not run;
// "audit verify" checks the hash chains there. tail.go decides in which order entries come, line.go what a line looks
// like.
package logs
