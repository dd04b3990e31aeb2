package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// runStart starts fingerpost on an empty store, then on the resulting store, and fills its cache.
func runStart(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus("corpus-", b.corpus)
	if err != nil {
		return nil, err
	}
	_, read, err1 := walk(c.config, true)
	_, stat, err2 := walk(c.config, false)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := b.clearStore(c.String()); err != nil { // other commands use the store that this leaves
		return nil, err
	}
	cold, err := b.timeStart(ctx, c)
	if err != nil {
		return nil, err
	}
	cold.server.stop()
	warm, err := b.timeStart(ctx, c)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err := b.fill(ctx, warm.server, c, c.names()); err != nil {
			return nil, err
		}
	}
	full, err := warm.server.memory()
	if err != nil {
		return nil, err
	}
	warm.server.stop()
	store, _, err := walk(b.dataDir(c.String()), false)
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		measured("start with an empty store", "s", cold.server.ready.Seconds()).
			over("reading and hashing all files", read.Seconds()).atMost(60),
		measured("start with an empty store: CPU", "s", cold.cpu.Seconds()),
		measured("start with an empty store: resident memory when ready", "MiB", cold.now),
		measured("start with an empty store: peak memory", "MiB", cold.peak).atMost(memoryBound),
		measured("start with an up-to-date store", "s", warm.server.ready.Seconds()).
			over("a stat of all files", stat.Seconds()).atMost(3),
		measured("start with an up-to-date store: CPU", "s", warm.cpu.Seconds()),
		measured("start with an up-to-date store: resident memory when ready", "MiB", warm.now),
		measured("resident memory with a full cache", "MiB", full.now).atMost(memoryBound),
		measured("full cache: peak memory", "MiB", full.peak).atMost(memoryBound),
		measured("the store on disk", "MiB", mib(store)),
	)
	return rep, nil
}

// A started server has the figures of its start.
type started struct {
	server *server
	cpu    time.Duration
	memory // when ready
}

func (b *bench) timeStart(ctx context.Context, c *corpus) (t started, err error) {
	if t.server, err = b.fingerpost(ctx, c.String(), c.config); err != nil {
		return t, err
	}
	if t.cpu, err = processCPU(t.server.pid); err != nil {
		return t, err
	}
	t.memory, err = t.server.memory()
	return t, err
}

// walk reads and hashes all files below dir, or only asks for their sizes. It is the baseline of a start with an empty
// store, or an up-to-date one.
func walk(dir string, read bool) (size int64, took time.Duration, err error) {
	began := time.Now()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if read {
			content, err := os.ReadFile(path) //nolint:gosec // a folder of the bench's own
			sha256.Sum256(content)
			return err
		}
		entry, err := d.Info()
		if err == nil {
			size += entry.Size()
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("walk %s: %w", dir, err)
	}
	return size, time.Since(began), nil
}

// memoryBound is the goal for the memory of the server, in MiB.
const memoryBound = 1.2 * 1024
