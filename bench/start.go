package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// runStart starts fingerpost on an empty store, then on the resulting store, and fills its cache.
func runStart(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	read, err := readTree(c.config)
	if err != nil {
		return nil, err
	}
	walk, err := statTree(c.config)
	if err != nil {
		return nil, err
	}
	name := c.String() // other commands use the store that this leaves
	if err := os.RemoveAll(b.dataDir(name)); err != nil {
		return nil, fmt.Errorf("delete the old store: %w", err)
	}
	b.fresh = false // the second start below needs the store of the first
	cold, err := b.timeStart(ctx, name, c, nil)
	if err != nil {
		return nil, err
	}
	warm, err := b.timeStart(ctx, name, c, func(s *server) error {
		ours := known(s, c, uniformSchedule(c.Domains, c.Seed))
		b.say("asking for every domain twice")
		return b.warm(ctx, ours, 2*c.Domains)
	})
	if err != nil {
		return nil, err
	}
	store, err := treeSize(b.dataDir(name))
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		comparedOnce("start with an empty store", "s", cold.ready.Seconds(), read.Seconds(), "reading and hashing all files").atMost(60),
		alone("start with an empty store: CPU", "s", cold.cpu.Seconds()),
		alone("start with an empty store: resident memory when ready", "MiB", mib(cold.atReady.now)),
		alone("start with an empty store: peak memory", "MiB", mib(cold.atReady.peak)).atMost(1.2*1024),
		comparedOnce("start with an up-to-date store", "s", warm.ready.Seconds(), walk.Seconds(), "a stat of all files").atMost(3),
		alone("start with an up-to-date store: CPU", "s", warm.cpu.Seconds()),
		alone("start with an up-to-date store: resident memory when ready", "MiB", mib(warm.atReady.now)),
		alone("resident memory with a full cache", "MiB", mib(warm.end.now)).atMost(1.2*1024),
		alone("full cache: peak memory", "MiB", mib(warm.end.peak)).atMost(1.2*1024),
		alone("the store on disk", "MiB", mib(store)),
	)
	return rep, nil
}

// A started holds the figures of one start.
type started struct {
	ready, cpu   time.Duration
	atReady, end memory // end: before the stop
}

func (b *bench) timeStart(ctx context.Context, name string, c *corpus, use func(*server) error) (t started, err error) {
	s, err := b.fingerpost(ctx, name, c.config, b.cacheFlags()...)
	if err != nil {
		return t, err
	}
	defer s.stop()
	t.ready = s.ready
	if t.cpu, err = processCPU(s.pid); err != nil {
		return t, err
	}
	if t.atReady, err = processMemory(s.pid); err != nil {
		return t, err
	}
	if use != nil {
		if err := use(s); err != nil {
			return t, err
		}
	}
	t.end, err = processMemory(s.pid)
	return t, err
}

// readTree is the baseline of a cold start: it reads and hashes every file, on two goroutines.
func readTree(dir string) (time.Duration, error) {
	began := time.Now()
	paths := make(chan string, 1024)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for path := range paths {
				content, err := os.ReadFile(path)
				if err != nil {
					errs[w] = err
				}
				sha256.Sum256(content)
			}
		})
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths <- path
		}
		return err
	})
	close(paths)
	wg.Wait()
	for _, e := range append(errs, err) {
		if e != nil {
			return 0, fmt.Errorf("read the corpus: %w", e)
		}
	}
	return time.Since(began), nil
}

// statTree is the baseline of a start with an up-to-date store.
func statTree(dir string) (time.Duration, error) {
	began := time.Now()
	_, err := treeSize(dir)
	return time.Since(began), err
}

// treeSize returns the size of all files below dir.
func treeSize(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		entry, err := d.Info()
		if err == nil {
			total += entry.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("walk %s: %w", dir, err)
	}
	return total, nil
}
