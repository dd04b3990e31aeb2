// Package client speaks HTTP with a service that has fingerpost's API: this program, or any service that follows the
// same platform and mail API.
//
// A Client reads projects with all that belongs to them, writes them, resolves domains and reads the mail log and the
// audit trail, which MailTail and AuditTail follow. An Edit changes one object under conditions, and Try says what it
// would change. The web console and the commands resolve, logs, audit, plan, import and export stand on it; package
// api/transfer does the comparing. Backup alone asks the ops listener.
//
// It promises that
//   - a call is repeated if the server asks for it (429 and 503, after Retry-After) and after a failed connection,
//     except for POST, which the server may have done, and for a client with Options.Once;
//   - a change that has begun is not cut off by the end of its context, only by Options.Timeout;
//   - no redirect takes the key to another address;
//   - errors name method and path, never the key, and replace control characters that a server sent;
//   - what a service lacks (paging, the flat form of resolve, a mail API, a template's text) is found out by asking,
//     and reported in the result instead of being an error.
//
// It needs the standard library and package catalog. It keeps nothing on disk, caches no answer, and does not compare
// what it reads with anything. Passwords and keys are never read: no API returns them.
//
// Every error that is an answer of the server is an *Error; Status reports on its status, Absent on a call that the
// service does not have. An *IgnoredError is a success after which a field is not what was sent. All other errors are
// failures of the connection or answers that are not in the API's envelope.
package client
