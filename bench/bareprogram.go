package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sys/unix"

	"fingerpost/bench/wire"
)

// A bareProgram is the baseline of durable writes. Each write makes the system calls that make a file's new content
// durable, and an unsynced batch for a Pebble store. It has no HTTP, no HCL and no checks. Its files are a corpus of
// its own with the same folders, which the server does not read. It runs in this process, which is otherwise idle. Safe
// for concurrent use by writers of different projects.
type bareProgram struct {
	corpus *corpus
	store  *pebble.DB
	temps  atomic.Int64 // number of temporary files so far
	record []byte
}

const (
	// recordBytes is what one write of a generated project adds to the log of fingerpost's store, rounded down: everything
	// that the file declares, its stamp and hash, and the generation.
	recordBytes = 5 << 10
	// bareMemTable is the size of the memtables of fingerpost's store.
	bareMemTable = 16 << 20
)

// newBareProgram starts it on a corpus like that of the options.
func (b *bench) newBareProgram() (*bareProgram, error) {
	c, err := b.openEdited("bare-")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(filepath.Dir(c.config), "bare-store")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear the bare program's store: %w", err)
	}
	store, err := pebble.Open(dir, &pebble.Options{MemTableSize: bareMemTable, Logger: quietPebble{}})
	if err != nil {
		return nil, fmt.Errorf("open the bare program's store: %w", err)
	}
	b.atEnd(func() error { return errors.Join(store.Close(), os.RemoveAll(dir)) })
	return &bareProgram{corpus: c, store: store, record: bytes.Repeat([]byte{'x'}, recordBytes)}, nil
}

// quietPebble drops Pebble's messages. A fatal error of Pebble ends the run.
type quietPebble struct{}

func (quietPebble) Infof(string, ...any)  {}
func (quietPebble) Errorf(string, ...any) {}
func (quietPebble) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("the bare program's store: "+format, args...))
}

// side is the bare program with a worker for each list of projects.
func (p *bareProgram) side(own [][]int) *side {
	texts := make([][]byte, p.corpus.Projects) // made once, so that the baseline does not pay for the generator
	for _, projects := range own {
		for _, project := range projects {
			texts[project] = p.corpus.file(project, 0)
		}
	}
	return writes("bare program", os.Getpid(), p.corpus, own, func() (func(project, revision int) error, func()) {
		return func(project, revision int) error {
			at := bytes.Index(texts[project], wire.RevisionWord) + len(wire.RevisionWord)
			copy(texts[project][at:at+6], fmt.Sprintf("%06d", revision%1_000_000))
			return p.write(p.corpus.path(project), texts[project])
		}, func() {}
	})
}

// write replaces a file durably: temporary file, fsync, exchange, fsync of the folder, an unsynced batch, and removal
// of the old content.
func (p *bareProgram) write(path string, text []byte) error {
	folder := filepath.Dir(path)
	name := filepath.Join(folder, fmt.Sprintf(".bare-%d", p.temps.Add(1)))
	temp, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	}
	if err == nil {
		err = syncFolder(folder)
	}
	if err == nil {
		err = p.store.Set([]byte(path), p.record, pebble.NoSync)
	}
	return errors.Join(err, os.Remove(name))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
