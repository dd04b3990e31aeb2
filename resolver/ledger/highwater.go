package ledger

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"fingerpost/resolver/pebblefs"
)

// Pebble treats a log that is damaged in the middle, truncated or removed as one that ends there, and reports nothing.
// So each mail write has a number, and a file next to the log holds the number of the last acknowledged write: a
// high-water mark. It is written after the log was synced and never exceeds it. The mark itself is not synced: a power
// cut may lose it, which at most hides a gap, and the synced log is whole then.

// highWaterFile is its name in the ledger's directory. It holds a number and a checksum, and is not part of backups.
const highWaterFile = "mail-witness"

const highWaterBytes = 12

// A highWater is the mark of the last acknowledged mail write.
type highWater struct {
	mu      sync.Mutex // guards the fields below
	name    string     // "" for no mark: in memory, read-only, closed, or the file cannot be opened
	file    *os.File   // nil before the first write
	written uint64
}

// readHighWater returns the number in a directory's mark, 0 if none can be read.
func readHighWater(dir string) uint64 {
	b, err := os.ReadFile(filepath.Join(dir, highWaterFile))
	if err != nil || len(b) != highWaterBytes || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// ack records that a write was acknowledged. A failure here is ignored: later checks then compare less. The file stays
// open, so that a failed instance never writes into a directory that replaced its own.
func (w *highWater) ack(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.name == "" || number <= w.written {
		return
	}
	if w.file == nil {
		f, err := pebblefs.OpenPrivate(w.name, os.O_WRONLY)
		if err != nil {
			w.name = ""
			return
		}
		w.file = f
	}
	w.written = number
	b := binary.BigEndian.AppendUint64(make([]byte, 0, highWaterBytes), number)
	_, _ = w.file.WriteAt(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), 0)
}

func (w *highWater) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name = ""
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// MailMissing returns how many of the last acknowledged mail writes were missing when the store was opened. The next
// write forgets them.
func (l *Ledger) MailMissing() uint64 { return l.mail.missing }
