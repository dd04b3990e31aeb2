package ledger

import (
	"errors"
	"fmt"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleFormat is Pebble's on-disk format. It is not FormatNewest, because an upgrade of a directory is irreversible
// and must not happen with an upgrade of the library.
const pebbleFormat = pebble.FormatValueSeparation

const (
	// cacheBytes is for two memtables, which Pebble takes out of its cache, and as much again: the newest pages of the mail
	// log, and the filters, of which that of a long suppression list has 1.3 MiB.
	cacheBytes    = 64 << 20
	memTableBytes = 16 << 20
	maxOpenFiles  = 128
	bloomBits     = 10 // 1 of 100 absent keys costs a block read
)

// pebbleOptions are Pebble's settings; settings not made here keep Pebble's default on purpose.
func (l *Ledger) pebbleOptions() *pebble.Options {
	po := &pebble.Options{
		FS:                 l.fs.FS,
		Cache:              l.cache,
		FormatMajorVersion: pebbleFormat,
		MemTableSize:       memTableBytes,
		MaxOpenFiles:       maxOpenFiles,
		ReadOnly:           l.fs.ReadOnly,
		Logger:             pebblefs.Logger{Log: l.log, Dir: l.fs},
		DisableWAL:         l.dir == "",
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	// Compactions by read statistics would make reads take DB.mu, which a parked flush may hold.
	po.Experimental.ReadSamplingMultiplier = -1
	po.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			if !l.fs.Closing() {
				l.fs.Fail(err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			err := fmt.Errorf("read %s: %w", l.fs.PathBase(info.Path), errors.Join(info.Details, errRecord))
			l.fs.Trip(pebblefs.Classify(err, l.fs.Missing()))
		},
	}
	return po
}
