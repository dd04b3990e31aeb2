package pebblefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// probeBytes is more than Pebble needs to open a store and take its first changes.
const probeBytes = 4 << 20

// Probe finds out whether the disk would take a store in dir: it writes, fsyncs and removes a file there, and makes the
// directory where there is none. A store that is opened on a disk that refuses leaves goroutines behind for good, so
// the way back asks first. The error is an ErrUnavailable whose text has no path.
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
