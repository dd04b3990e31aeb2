package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A hold is a read lease on a file (fcntl(2), F_SETLEASE): no process has the file open for writing, and one that opens
// it for writing waits until the hold is closed. Without the lease an editor that writes in place could write the rest
// of its text into a file that was just exchanged.
type hold struct {
	*os.File
	info os.FileInfo
}

// holdStill holds a regular file. ErrChanged: it is open for writing, or not a regular file any more. *UnfitError: the
// kernel cannot tell.
func holdStill(name string) (*hold, error) {
	f, err := os.OpenFile(name, unfollowed, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, ErrChanged
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrChanged
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	}
	if err == nil {
		return &hold{f, info}, nil
	}
	f.Close()
	if errors.Is(err, unix.EAGAIN) {
		return nil, ErrChanged
	}
	errno, lease := errors.AsType[unix.Errno](err)
	if !lease {
		return nil, err
	}
	return nil, unknownWriter(name, whyUnknown(errno, info))
}

// whyUnknown returns why the kernel cannot tell, and what to do about it.
func whyUnknown(err unix.Errno, info os.FileInfo) string {
	if err == unix.EACCES || err == unix.EPERM {
		owner := info.Sys().(*syscall.Stat_t).Uid
		return fmt.Sprintf("the kernel tells only its owner, uid %d, whether an editor is writing it, and the service is "+
			"uid %d: chown it to the service's user, or give the service CAP_LEASE", owner, os.Geteuid())
	}
	return fmt.Sprintf("its file system does not tell whether an editor is writing it (%v): keep the config folder on "+
		"a local file system", err)
}

// check returns ErrChanged unless the file is still the one at name, has the content with the hash want, and no process
// waits to write to it.
func (h *hold) check(d Disk, name string, want [sha256.Size]byte) error {
	info, err := d.Lstat(name)
	if err != nil {
		return Cause(err)
	}
	if !os.SameFile(info, h.info) {
		return ErrChanged
	}
	b, err := d.ReadFile(name)
	if err != nil {
		return Cause(err)
	}
	lease, err := unix.FcntlInt(h.Fd(), unix.F_GETLEASE, 0)
	if err != nil || lease != unix.F_RDLCK || sha256.Sum256(b) != want {
		return ErrChanged
	}
	return nil
}

// keepAttributes gives the file name the extended attributes of the file like, POSIX ACLs included, and removes those
// inherited from its folder. Attributes that are equal in both, such as a security label, stay. The error names an
// attribute that cannot be kept.
func keepAttributes(name, like string) error {
	want, err := attributes(like)
	if err != nil {
		return err
	}
	have, err := attributes(name)
	if err != nil {
		return err
	}
	for attr := range have {
		if _, ok := want[attr]; ok {
			continue
		}
		if err := unix.Lremovexattr(name, attr); err != nil && !errors.Is(err, unix.ENODATA) {
			return fmt.Errorf("a new file gets %s from the system or the folder, it has none, and that cannot be kept so: %w",
				attributeName(attr), err)
		}
	}
	for attr, value := range want {
		if now, ok := have[attr]; ok && bytes.Equal(now, value) {
			continue
		}
		if err := unix.Lsetxattr(name, attr, value, 0); err != nil {
			return fmt.Errorf("its %s cannot be kept: %w", attributeName(attr), err)
		}
	}
	return nil
}

func attributeName(attr string) string {
	if attr == "system.posix_acl_access" {
		return "ACL (" + attr + ")"
	}
	return "extended attribute " + attr
}

// attributes reads the extended attributes of a file that the process may see, except those in which the kernel keeps
// checksums of the content or of the inode.
func attributes(name string) (map[string][]byte, error) {
	n, err := unix.Llistxattr(name, nil)
	if n == 0 && err == nil || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	buf := make([]byte, 64<<10) // the kernel's limit for the list of names and for each value
	if n, err = unix.Llistxattr(name, buf); err != nil {
		return nil, fmt.Errorf("its extended attributes cannot be listed: %w", err)
	}
	all := map[string][]byte{}
	for attr := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if attr == "" || attr == "security.ima" || attr == "security.evm" {
			continue
		}
		n, err := unix.Lgetxattr(name, attr, buf)
		if errors.Is(err, unix.ENODATA) {
			continue // removed since, or the kernel's and empty
		}
		if err != nil {
			return nil, fmt.Errorf("its %s cannot be read: %w", attributeName(attr), err)
		}
		all[attr] = bytes.Clone(buf[:n])
	}
	return all, nil
}
