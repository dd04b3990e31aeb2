package catalog

import "bytes"

// LFSPointerText says what is wrong with a file for which IsLFSPointer is true, and what to do.
const LFSPointerText = "is a pointer of Git LFS, not the content: run \"git lfs pull\" in this clone"

// IsLFSPointer reports whether a file is the pointer that Git LFS keeps in its place: a checkout without git-lfs leaves it
// there.
func IsLFSPointer(content []byte) bool {
	const version = "version https://git-lfs.github.com/spec/"
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	return len(content) < 1024 && bytes.HasPrefix(content, []byte(version)) && bytes.Contains(content, []byte("\noid "))
}
