// Package cluster carries the accepted tree from one node, the authority, to any number of edges over NATS JetStream.
//
// An Authority puts every accepted file into a key-value bucket, one key a file, and ends each generation with a
// marker: the position, the number of files, and the root, which is the sum modulo 2^256 of the hashes of all files. A
// Follower reads the bucket in order and hands a generation to its Replica once its own root equals that of the marker:
// whole, or not at all. Without this package every edge would need the files, by git or by a shared disk, and nobody
// could tell when an edge has them.
//
// The bucket is transport, never the truth. Every failure ends in the same step: the authority lists the bucket and
// puts what differs from its tree; the follower reads the bucket from its start and applies what differs from its
// store. This heals a lost message, a bucket that was deleted or made again, another epoch, and damage on either side.
// The authority does so whenever it was disconnected, and once an hour: a server that has lost files names the same
// last sequence.
//
// What we rely on, with the tests and issues of nats-server 2.15.2 read:
//   - A stream of one writer keeps its messages in the order of their sequences, and the last message of each subject.
//   - A publish with an expected last sequence is refused (error 10071) if anybody else has published. Every publish of
//     an authority has one, so that an authority that was replaced can publish nothing. The renewal of its lease has
//     that of the lease's own key: it need not wait for the publishes that are under way, see tail.
//   - An acknowledged publish is on the disk (sync_interval always; before 2.15.2 compaction ignored it, #8475).
//   - An atomic batch is kept whole or not at all; an acknowledged one is on the disk (it is synced once, at its end).
//   - A direct get answers messages in the order of the stream, from the first one asked for. A replica may lag behind.
//
// What we do not rely on: core subscriptions, which receive refused messages too and may lose some. They only say that
// there is news. Consumers are not used: a direct get has no state on the server, so an edge needs no right but to ask.
// No clock is compared with another machine's: a lease has run out when its revision has not moved for its time to
// live.
//
// The package does not know HTTP or HCL. cmd/fingerpost connects it with configsrc and resolver, which satisfy Tree and
// Replica. README.md says how a cluster is run.
package cluster
