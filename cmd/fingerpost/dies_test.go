package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
)

// mainThatDies is main for a server that kills itself before the step of a write that $DIES numbers, from 1 for the
// first one that makes a temporary file; or that omits the steps that $DIES names. The shipped binary does not contain
// it.
func mainThatDies() {
	d := &deathDisk{leaveOut: os.Getenv("DIES")}
	if n, err := strconv.Atoi(d.leaveOut); err == nil {
		d.at = int64(n)
	}
	ctx := context.WithValue(context.Background(), diskKey{}, atomicfile.Disk(d))
	os.Exit(runContext(ctx, os.Args[1:], cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// A deathDisk is the disk, with a kill before one of its steps.
type deathDisk struct {
	atomicfile.OSDisk
	at       int64 // 0: never
	leaveOut string
	writing  atomic.Bool // the first write has begun
	steps    atomic.Int64
}

// step kills the process if its turn has come, and reports whether the step is to be done at all.
func (d *deathDisk) step(name string) bool {
	if d.steps.Add(1) == d.at {
		fmt.Fprintf(os.Stderr, "dies before: %s\n", name)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return !strings.Contains(d.leaveOut, name)
}

func (d *deathDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	d.writing.Store(true)
	d.step("create")
	f, err := d.OSDisk.CreateTemp(dir, pattern, perm)
	if err != nil {
		return nil, err
	}
	return &deathTemp{f, d}, nil
}

// later is step for steps before the first write.
func (d *deathDisk) later(name string) bool {
	return !d.writing.Load() || d.step(name)
}

func (d *deathDisk) Stat(name string) (fs.FileInfo, error) {
	d.later("stat")
	return d.OSDisk.Stat(name)
}

func (d *deathDisk) ReadFile(name string) ([]byte, error) {
	d.later("read back")
	return d.OSDisk.ReadFile(name)
}

func (d *deathDisk) Rename(from, to string) error {
	d.later("rename")
	return d.OSDisk.Rename(from, to)
}

func (d *deathDisk) Exchange(a, b string) error {
	d.later("exchange")
	return d.OSDisk.Exchange(a, b)
}

func (d *deathDisk) Link(from, to string) error {
	d.later("link")
	return d.OSDisk.Link(from, to)
}

func (d *deathDisk) Remove(name string) error {
	d.later("remove")
	return d.OSDisk.Remove(name)
}

func (d *deathDisk) SyncFolder(dir string) error {
	if !d.later("sync of the folder") {
		return nil
	}
	return d.OSDisk.SyncFolder(dir)
}

// A deathTemp is a temporary file of a deathDisk.
type deathTemp struct {
	atomicfile.TempFile
	d *deathDisk
}

func (f *deathTemp) Chown(uid, gid int) error {
	f.d.step("change of the owner")
	return f.TempFile.Chown(uid, gid)
}

func (f *deathTemp) Chmod(mode fs.FileMode) error {
	f.d.step("change of the mode")
	return f.TempFile.Chmod(mode)
}

func (f *deathTemp) Write(b []byte) (int, error) {
	f.d.step("write")
	if f.d.steps.Load()+1 == f.d.at { // the next one dies in the middle of this
		n, _ := f.TempFile.Write(b[:len(b)/2])
		f.d.step("rest of the write")
		return n, nil
	}
	return f.TempFile.Write(b)
}

func (f *deathTemp) Sync() error {
	if !f.d.step("sync of the file") {
		return nil
	}
	return f.TempFile.Sync()
}

func (f *deathTemp) Close() error {
	f.d.step("close")
	return f.TempFile.Close()
}
