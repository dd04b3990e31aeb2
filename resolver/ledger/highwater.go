package ledger

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"fingerpost/resolver/pebblefs"
)

// Pebble takes a log that is damaged in the middle, cut or removed for one that ends there, and reports nothing. So each
// write of mail has a number, and a file next to the log holds the number of the last one that was acknowledged: a
// high-water mark. It is written after the log was synced and never claims more than the log holds. It is not synced
// itself; that costs at most a gap that is not reported after a power cut, when the log, which is synced, is whole.

// highWaterFile is its name in the ledger's directory. It holds a number and a checksum, and is in no backup.
const highWaterFile = "mail-witness"

const highWaterBytes = 12

// A highWater is the mark of how far the writes of mail were acknowledged.
type highWater struct {
	name  string
	on    atomic.Bool   // a store in memory, or one that is only read, has none
	acked atomic.Uint64 // the number of the last one

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil before the first write
	written uint64
}

// readHighWater returns the number of a directory's mark, 0 where there is none that can be read.
func readHighWater(dir string) uint64 {
	b, err := os.ReadFile(filepath.Join(dir, highWaterFile))
	if err != nil || len(b) != highWaterBytes || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// ack notes that a write was acknowledged. Of several at a time one writes for all. What fails here fails nothing: there
// is less to be compared then.
func (w *highWater) ack(number uint64) {
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
func (w *highWater) write(number uint64) {
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
	b := binary.BigEndian.AppendUint64(make([]byte, 0, highWaterBytes), number)
	_, _ = w.file.WriteAt(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), 0)
}

func (w *highWater) close() {
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
func (l *Ledger) MailMissing() uint64 { return l.mail.missing }
