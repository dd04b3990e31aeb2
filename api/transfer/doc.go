// Package transfer moves configuration between files and servers: plan shows the difference, import writes files from a
// server's configuration, export changes a server to match the files.
//
// It promises that
//   - PlanServer and PlanStore change nothing on either side, and no Plan holds a secret's value;
//   - an import is read and checked as a whole (ReadServer, Place) before Write touches the first file, and a file that
//     was saved in between is left alone;
//   - an export is planned as a whole (PlanExport) before Send makes the first change, and a second export does
//     nothing;
//   - what no API returns or takes is listed for people (NotCompared, NotKept, NotExported), not guessed.
//
// Projects are paired by uuid, then by slug; domains by name, then by id; templates by code. Settings are compared as
// in force, with the folder's defaults block applied.
//
// It needs a client.Client for the server, and, through interfaces that it declares, a Store to compare with and a
// Folder to write into. It does not parse flags, print, or choose exit codes: package main does. It does not watch
// files and knows no running server of this process.
//
// The types with JSON tags are the documents that "plan --json", "import --json" and "export --json" print. Nothing
// here is safe for concurrent use; each function makes its requests concurrently by itself.
package transfer
