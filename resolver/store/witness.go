package store

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"fingerpost/resolver/pebblefs"
)

// Pebble takes a log that is damaged in the middle, cut or gone for one that ends there, and says nothing. The writes of
// mail are numbered, so a file beside the log that holds the number of the last one that was acknowledged shows what is
// missing: a witness. It is written after the log was synced, and never says more than what is in there; that it is not
// synced itself costs at most a gap that is not told after a power cut, which leaves a log that was synced alone.

// witnessFile is its name in the data directory. It holds a number and a checksum, and is in no backup.
const witnessFile = "mail-witness"

const witnessBytes = 12

// A witness knows how far the writes of mail were acknowledged.
type witness struct {
	name  string
	on    atomic.Bool   // a store in memory, or one that is only read, has none
	acked atomic.Uint64 // the number of the last one

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil before the first write
	written uint64
}

// readWitness returns the number that a directory's witness holds, 0 where there is none that can be read.
func readWitness(dir string) uint64 {
	b, err := os.ReadFile(filepath.Join(dir, witnessFile))
	if err != nil || len(b) != witnessBytes || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// ack notes that a write was acknowledged. Of several at a time one writes for all. What fails here fails nothing: there
// is less to be compared then.
func (w *witness) ack(number uint64) {
	if !w.on.Load() {
		return
	}
	for {
		have := w.acked.Load()
		if number <= have || w.acked.CompareAndSwap(have, number) {
			break
		}
	}
	for w.mu.TryLock() {
		number := w.acked.Load()
		if number > w.written {
			w.write(number)
		}
		w.mu.Unlock()
		if w.acked.Load() == number {
			return
		}
	}
}

// write puts a number into the file. The file stays open, so that an instance that has failed never writes into one that
// has taken its directory's place.
func (w *witness) write(number uint64) {
	w.written = number
	if w.file == nil && w.on.Load() {
		f, err := pebblefs.OpenPrivate(w.name, os.O_WRONLY)
		if err != nil {
			w.on.Store(false)
			return
		}
		w.file = f
	}
	if w.file == nil {
		return
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, witnessBytes), number)
	_, _ = w.file.WriteAt(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), 0)
}

func (w *witness) close() {
	w.on.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// MailMissing tells how many of the last writes of mail that were acknowledged were not in the store when it was opened.
// With the next write they are forgotten.
func (s *Store) MailMissing() uint64 { return s.mail.missing }
