package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// A bareProgram is the baseline of durable writes: for each the system calls that make a file's new content durable,
// and a batch for a store. No HTTP, no HCL, no checks. Its files are a corpus of its own with the same folders, beside
// the one that is served, since the server would otherwise take notice. It runs in this process, which has nothing else
// to do meanwhile. Safe for concurrent use by writers of different projects.
type bareProgram struct {
	corpus *corpus
	log    *os.File
	at     atomic.Int64 // in log, modulo logSize
	temps  atomic.Int64 // that there have been
	batch  []byte
}

const (
	// batchBytes is what one write of a generated project adds to the log of fingerpost's store, rounded down: the whole
	// of what the file declares, its stamp and hash, and the generation.
	batchBytes = 5 << 10
	// logSize is where the log begins again from its start, as Pebble takes its own logs again and again.
	logSize = 64 << 20
)

func newBareProgram(c *corpus) (*bareProgram, error) {
	log, err := os.Create(filepath.Join(filepath.Dir(c.config), "bare.log"))
	if err != nil {
		return nil, fmt.Errorf("create the bare program's log: %w", err)
	}
	return &bareProgram{corpus: c, log: log, batch: bytes.Repeat([]byte{'x'}, batchBytes)}, nil
}

// close removes the log.
func (p *bareProgram) close() error { return errors.Join(p.log.Close(), os.Remove(p.log.Name())) }

// writer returns the writes of one worker.
func (p *bareProgram) writer() (w writer, err error) {
	texts := map[int][]byte{} // made once: the baseline does not pay for the generator
	return writer{
		write: func(project, revision int) error {
			text := texts[project]
			if text == nil {
				text = p.corpus.file(project, p.corpus.Revision)
				texts[project] = text
			}
			at := bytes.Index(text, revisionWord) + len(revisionWord)
			copy(text[at:at+6], fmt.Sprintf("%06d", revision%1_000_000))
			return p.write(p.corpus.path(project), text)
		},
		close: func() {},
	}, nil
}

// write replaces a file durably: temporary file, fsync, exchange, fsync of the folder, a batch that is not synced,
// and the old content removed.
func (p *bareProgram) write(path string, text []byte) error {
	folder := filepath.Dir(path)
	temp, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf(".bare-%d", p.temps.Add(1))), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = swapFiles(temp.Name(), path)
	}
	swapped := err == nil
	if errors.Is(err, errors.ErrUnsupported) { // what fingerpost does there, too
		err = os.Rename(temp.Name(), path)
	}
	if err == nil {
		err = syncFolder(folder)
	}
	if err == nil {
		at := p.at.Add(batchBytes) - batchBytes
		_, err = p.log.WriteAt(p.batch, at%logSize)
	}
	if swapped || err != nil {
		if gone := os.Remove(temp.Name()); err == nil {
			err = gone
		}
	}
	return err
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
