// Package natsd is the built-in NATS server of a cluster, as a supervised process of its own.
//
// A Supervisor starts the process, which runs Run, and starts it again when it ends, when files of its folder are gone,
// and when its disk was full and has room again; whatever happens to the engine, the service that supervises it goes on
// answering. The process ends with its supervisor. The files of the stream are synced at each publish, so an end at any
// moment loses nothing. Accounts keep edges apart: each may use what Config.Grants names, and reaches no other edge.
//
// The package knows no subjects and no buckets: package cluster does, and gives them as Grants. It is the only importer
// of nats-server. It needs a folder on a local disk.
package natsd
