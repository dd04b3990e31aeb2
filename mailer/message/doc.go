// Package message composes the exact bytes of a mail from a Draft, and proves them.
//
// Compose promises a message that every server accepts and every reader understands in the same way: 7-bit lines of at
// most 998 bytes, each header once, one From mailbox, no header that a caller has smuggled in. Equal drafts give equal
// bytes, so a retry sends what the first attempt sent. What a caller can correct is refused with all its problems at
// once.
//
// mailyak encodes the bodies and builds the multipart (mime.go). The headers are our own (header.go): mailyak quotes no
// names, encodes none in B, folds no subject, writes no Message-ID, and dates the message by its own clock. Its
// boundaries are random, and it wraps everything into a multipart/mixed; mime.go replaces the one and takes off the
// other.
//
// The finished bytes are read back without the code that has written them (verify.go): a message that does not say what
// the draft says is an error, and is never sent.
//
// The package does not send, knows no templates and no attachments, and never quotes a mail in its errors.
package message
