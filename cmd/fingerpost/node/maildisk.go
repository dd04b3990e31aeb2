package node

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"fingerpost/configsrc/atomicfile"
)

// The room that sends leave free on the disk that mail is stored on: keptForMail, which holds Pebble's memtables and
// their log, plus the size of the store, up to mostMerged, because a compaction writes tables again before it removes
// the old ones. On a full disk the store fails, and no mail is sent at all.
const (
	keptForMail = 64 << 20
	mostMerged  = 2 << 30
)

// roomAgain is how much more must be free before sends resume, so that they do not stop and start with every flush.
const roomAgain = 16 << 20

// measureEvery bounds how often the disk is measured.
const measureEvery = 100 * time.Millisecond

// A mailDisk checks whether the disk of the store has room for mail.
type mailDisk struct {
	dir     string
	waiting func() int64 // mails
	reclaim func() error // frees the room of mails that have ended
	log     *slog.Logger

	mu         sync.Mutex // guards what follows
	measured   time.Time
	is         string // what the disk lacks
	most       int64  // mails that waited since the last reclaim
	reclaiming bool
}

// low returns what the disk lacks, "" if it has enough.
func (d *mailDisk) low() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	waiting := d.waiting()
	d.most = max(d.most, waiting)
	if now.Sub(d.measured) < measureEvery {
		return d.is
	}
	more := uint64(0)
	if d.is != "" {
		more = roomAgain
	}
	d.measured, d.is = now, lowDisk(d.dir, more)
	if d.is != "" && waiting <= d.most/2 && d.most > 0 && !d.reclaiming {
		d.most, d.reclaiming = waiting, true
		go func() {
			if err := d.reclaim(); err != nil {
				d.log.Warn("the room of mails that were sent cannot be reclaimed", "error", err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reclaiming = false
		}()
	}
	return d.is
}

// LowDisk names what the disk of a data folder lacks for mail, "" if it has enough.
func LowDisk(dir string) string { return lowDisk(dir, 0) }

func lowDisk(dir string, more uint64) string {
	return atomicfile.LowDisk(dir, keptForMail, min(folderSize(dir), mostMerged)+more)
}

// freeShare returns the free share of a folder's file system, 1 where the system does not tell.
func freeShare(dir string) float64 {
	room, err := atomicfile.RoomOf(dir)
	if err != nil || room.Bytes == 0 {
		return 1
	}
	return float64(room.FreeBytes) / float64(room.Bytes)
}

// folderSize returns the size of the files in a folder. A file that disappears counts as 0.
func folderSize(dir string) (n uint64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += uint64(info.Size())
		}
	}
	return n
}
