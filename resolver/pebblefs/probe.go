package pebblefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// probeBytes is more than Pebble needs to open a store and apply its first changes.
const probeBytes = 4 << 20

// Probe checks whether the disk would take a store in dir: it writes, fsyncs and removes a file there, and creates the
// directory if needed. Opening a store on a disk that refuses leaves goroutines behind for good, so recovery probes
// first. The error is an ErrUnavailable whose text has no path.
func Probe(dir string) error {
	err := MkdirPrivate(dir)
	if err == nil {
		err = probe(filepath.Join(dir, "probe.tmp"))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, WithoutPath(err))
	}
	return nil
}

func probe(name string) error {
	f, err := OpenPrivate(name, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(name))
}
