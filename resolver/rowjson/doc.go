// Package rowjson writes the rows of the API as JSON, and their ETags: projects, domains, settings, templates, mails,
// keys, webhooks and entries of the audit trail.
//
// What it promises. Each row has one function Append…, which appends the row in the API's form to a buffer; the fields
// of the specification come first and in its order, those of this service after them. …ETag returns the strong, quoted
// ETag of a row. It is the same on every node: it does not depend on the times of a row, except for a mail's log entry.
// It covers every field that a request can set, so that If-Match notices the change of another client. No row has a
// secret; the only exceptions are the new ones that AppendKey and AppendNewSecret are given, which are shown once.
//
// What it needs. Records of package catalog, which it reads and does not keep. All text must be valid UTF-8, like the
// text of the files.
//
// What it does not do. It reads no store, knows no form of resolve (package resolver composes these of the same rows),
// and writes no envelope around a row, which is web's part. object.go has the parts that all rows are made of.
// AppendObject does not allocate beyond its buffer, because the misses of resolve use it.
package rowjson
