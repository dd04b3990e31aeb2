// Package archive makes and restores backups: one gzipped tar with a manifest (the formats, the generation, every file's
// size and SHA-256), then the files of a checkpoint of the store, and of one of the ledger.
//
// An archive holds what the two hold: the config files' bytes, so sealed values, key hashes, and a secret that somebody has
// written in clear text; the two times of every object; the mail log, the queue and the idempotency keys.
//
// Restore takes nothing for granted: only names that Pebble gives, only sizes and hashes that the manifest has, nothing
// before, between or behind. Formats that are too new are refused by the manifest alone. What is restored is built next to
// its place, opened, read through, and exchanged for the data directory that is there, which is kept.
//
// The mails of a restored queue may have been sent since the backup was made, so each is marked as uncertain. The mail of an
// archive that an earlier release has made is moved from its store into a ledger while it is restored.
package archive
