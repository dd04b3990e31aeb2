// Package archive makes and restores backups: one gzipped tar with a manifest (the formats, the generation, every
// file's size and SHA-256), then the files of a checkpoint of the store, and of one of the ledger.
//
// An archive holds the content of both: the config files' bytes, so sealed values, key hashes, and secrets written in
// clear text; the two times of every object; the mail log, the queue and the idempotency keys.
//
// Restore trusts nothing: it accepts only names that Pebble gives, only sizes and hashes that the manifest has, and
// nothing before, between or behind. Formats that are too new are refused by the manifest alone. The restored store is
// built next to its place, opened, read through, and exchanged with the present data directory, which is kept.
//
// The mails of a restored queue may have been sent since the backup was made, so each is marked as uncertain.
package archive
