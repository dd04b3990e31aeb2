package configsrc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

const aclAccess, aclDefault = "system.posix_acl_access", "system.posix_acl_default"

// acl gives one more user these rights on a file that its owner and group may write and others may read, in the form of
// acl(5) in extended attributes.
func acl(user uint32, rights uint16) []byte {
	const none = 0xffffffff
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, rights uint16
		id          uint32
	}{{1, 6, none}, {2, rights, user}, {4, 6, none}, {0x10, 6, none}, {0x20, 4, none}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.rights)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

func attribute(t *testing.T, name, attr string) []byte {
	t.Helper()
	b := make([]byte, 1024)
	n, err := unix.Lgetxattr(name, attr, b)
	if errors.Is(err, unix.ENODATA) {
		return nil
	}
	must(t, err)
	return b[:n]
}

func setAttribute(t *testing.T, name, attr string, value []byte) {
	t.Helper()
	err := unix.Lsetxattr(name, attr, value, 0)
	if errors.Is(err, unix.ENOTSUP) {
		testrig.Missing(t, "xattr", fmt.Sprintf("a file system with %s at %s", attr, name))
	}
	must(t, err)
}

// An ACL and extended attributes stay, and what a folder gives to its new files is not added.
func TestEditKeepsAttributes(t *testing.T) {
	dir := t.TempDir()
	with := write(t, filepath.Join(dir, "with.hcl"), "one\n")
	setAttribute(t, with, "user.reviewed", []byte("by hand"))
	setAttribute(t, with, aclAccess, acl(theirs, 4))
	without := write(t, filepath.Join(dir, "without.hcl"), "one\n")
	must(t, os.Chmod(without, 0o600))
	setAttribute(t, dir, aclDefault, acl(theirs, 6))
	for _, name := range []string{with, without} {
		before, err := os.Stat(name)
		must(t, err)
		must(t, atomicfile.Edit(dir, filepath.Base(name), appendText("two\n")))
		if after, err := os.Stat(name); err != nil || after.Mode() != before.Mode() || read(t, name) != "one\ntwo\n" {
			t.Errorf("%s: %v %v, was %v", name, after.Mode(), err, before.Mode())
		}
	}
	if got := attribute(t, with, "user.reviewed"); string(got) != "by hand" {
		t.Errorf("the extended attribute is %q", got)
	}
	if got := attribute(t, with, aclAccess); !bytes.Equal(got, acl(theirs, 4)) {
		t.Errorf("the ACL is %x", got)
	}
	if got := attribute(t, without, aclAccess); got != nil {
		t.Errorf("a file without an ACL has %x", got)
	}
}

// What cannot be kept is named, and nothing is written.
func TestWriteRefusedForWhatCannotBeKept(t *testing.T) {
	for _, c := range []struct {
		what    string
		prepare func(name string) error
		says    string
	}{
		{"owner", func(name string) error { return os.Chown(name, theirs, serviceUser) }, fmt.Sprintf("owner, uid %d", theirs)},
		{"group", func(name string) error { return os.Chown(name, serviceUser, theirs) }, fmt.Sprintf("group, gid %d", theirs)},
		{"extended attribute", func(name string) error { return unix.Lsetxattr(name, "security.fingerpost", []byte("x"), 0) },
			"extended attribute security.fingerpost cannot be kept"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir, name := sharedFolder(t, serviceUser)
			must(t, c.prepare(name))
			before, err := os.Stat(name)
			must(t, err)
			code, message := startService(t, dir, asServiceUser...).write(t)
			if code != catalog.CodeReadOnly || !strings.Contains(message, c.says) || !strings.Contains(message, "acme.hcl") {
				t.Errorf("%s %s, want %s with %q", code, message, catalog.CodeReadOnly, c.says)
			}
			after, err := os.Stat(name)
			must(t, err)
			if a, b := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t); a.Ino != b.Ino || a.Uid != b.Uid || a.Gid != b.Gid {
				t.Errorf("the file was replaced: %+v, was %+v", b, a)
			}
			if got := read(t, name); got != project("acme", "acme.example") {
				t.Errorf("it holds %q", got)
			}
			onlyFiles(t, dir, "acme.hcl")
		})
	}
}
