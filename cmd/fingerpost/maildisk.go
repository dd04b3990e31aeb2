package main

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"fingerpost/configsrc/atomicfile"
)

// What sends leave free on the disk that mail is stored on: keptForMail, which has room for what Pebble has in memory and its log of
// it, and as much as the store has, up to mostMerged, because a merge of its tables writes them anew before it removes them. Once
// the disk is full, the store fails, and no mail is sent at all.
const (
	keptForMail = 64 << 20
	mostMerged  = 2 << 30
)

// roomAgain is how much more must be free before sends go on, so that they do not go to and fro with every flush.
const roomAgain = 16 << 20

// measureEvery bounds how often the disk is measured, however many sends there are.
const measureEvery = 100 * time.Millisecond

// A mailDisk knows whether there is room for mail on the disk of the store.
type mailDisk struct {
	dir     string
	waiting func() int64 // mails
	reclaim func() error // gives the room of mails that have ended back
	log     *slog.Logger

	mu         sync.Mutex // guards what follows
	measured   time.Time
	is         string // what there is too little of
	most       int64  // mails that waited since the last reclaim
	reclaiming bool
}

// low says what the disk has too little of, "" where there is enough.
func (d *mailDisk) low() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	waiting := d.waiting()
	d.most = max(d.most, waiting)
	if now.Sub(d.measured) < measureEvery {
		return d.is
	}
	extra := min(folderSize(d.dir), mostMerged)
	if d.is != "" {
		extra += roomAgain
	}
	d.measured, d.is = now, atomicfile.LowDisk(d.dir, keptForMail, extra)
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

// folderSize is how much the files in a folder have. One that goes meanwhile has nothing.
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
