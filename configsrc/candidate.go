package configsrc

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// A candidate is a file that differs from its accepted state, with the results of a look or a write.
type candidate struct {
	content  // as it is now; empty if it is gone or was not read
	path     string
	stamp    catalog.Stamp // gone: of the folder, see tree.place
	prev     *file         // the accepted state; nil: never accepted
	refused  *quarantined  // set: unchanged since it was refused
	gone     bool
	named    bool                 // gone, and an event named it since the look before
	touched  bool                 // same content; only the stamp differs, or was racy
	by       *catalog.Author      // the client whose write it is; nil: it was found in the folder
	times    []catalog.ObjectTime // of its objects, as the authority of an edge has them; nil: the Sink's
	cross    hclfile.Diagnostics  // problems of the file with other files
	rejected bool
	suspect  bool // needs a second look
}

// out reports whether the candidate's new state is not accepted, so that the old one stays.
func (c *candidate) out() bool { return c.rejected || c.suspect }

func sortByPath(list []*candidate) {
	slices.SortFunc(list, func(a, b *candidate) int { return strings.Compare(a.path, b.path) })
}

// A content is what one decode of a config file gives.
type content struct {
	bytes    []byte
	declared *catalog.Declared   // nil when it does not decode
	refs     []catalog.Ref       // of the objects decoded here
	claims   []claim             // in the order of claimsOf
	counts   counts              // projects and domains among them
	deps     []catalog.Dep       // the files that it names
	texts    map[string][]byte   // their contents
	diags    hclfile.Diagnostics // of the file itself
	fault    error               // of the disk, in reading a file that file() names: the reason for diags
	plain    bool                // contains a clear-text secret
	fresh    []string            // slugs of projects with uuid = "new"
}

// decode decodes the bytes and fills in the results. files has the files that they name. The Result is for callers that
// edit the bytes or point into them; it is too large to keep for every file. today is as in hclfile.Options.
func (c *content) decode(display string, files namedReader, today string) *hclfile.Result {
	stamps := map[string]catalog.Stamp{}
	read := func(p string) ([]byte, error) {
		b, stamp, err := files.ReadNamed(p, folder.MaxTextBytes)
		stamps[p] = stamp
		if err != nil {
			c.failed(err)
			return nil, linkOrCause(err)
		}
		if c.texts == nil {
			c.texts = map[string][]byte{}
		}
		c.texts[p] = b
		return b, nil
	}
	r, diags := hclfile.Decode(display, c.bytes, hclfile.Options{ReadFile: read, Today: today})
	c.diags = diags
	c.plain, c.fresh = r.PlainSecret, r.NewUUIDs
	for _, p := range r.Deps {
		if _, asked := stamps[p]; !asked { // a ca_file, which was not read yet
			if _, err := read(p); err != nil {
				c.diags = append(c.diags, hclfile.FileProblem(display, "ca_file "+p+": "+err.Error(), ""))
			}
		}
		c.deps = append(c.deps, catalog.Dep{Path: p, Stamp: stamps[p]})
	}
	if sealing := r.Declared.Sealing; sealing != nil {
		for _, recipient := range sealing.Recipients {
			if err := seal.CheckRecipient(recipient); err != nil {
				c.diags = append(c.diags, r.Diagnose(catalog.Ref{Kind: catalog.KindSealing}, hclfile.Error,
					fmt.Sprintf("recipient %q is no age X25519 recipient: %v", recipient, err),
					"\"fingerpost secrets keygen\" prints one"))
			}
		}
	}
	if c.diags.HasErrors() {
		return r
	}
	c.declared = r.Declared
	c.refs = r.Declared.Refs()
	c.claims, c.counts = claimsOf(c.refs)
	return r
}

// failed records why a file that file() names could not be read, if the disk is at fault and not the files.
func (c *content) failed(err error) {
	if c.fault == nil && atomicfile.IsDiskFault(err) {
		c.fault = err
	}
}

// positions decodes a file again to find the ranges of a diagnostic, which are too large to keep for every file.
func positions(display string, src []byte) *hclfile.Result {
	r, _ := hclfile.Decode(display, src, hclfile.Options{})
	return r
}

func linkOrCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file below the config folder")
	}
	if c := atomicfile.Cause(err); c != err {
		return c
	}
	return err
}

// A quarantined file's new content is not served; its last good declaration is.
type quarantined struct {
	sign  string // of the refused state
	diags hclfile.Diagnostics
	by    *catalog.Author // who has brought it; nil: somebody has saved it here
	// broken are the problems of the file by itself: as long as its stamp and those of its dependencies are unchanged, it
	// need not be parsed again. Empty if the problem is with other files, or a stamp cannot show a change.
	broken hclfile.Diagnostics
	stamp  catalog.Stamp
	deps   []catalog.Dep
}

// sign identifies one state of a file.
func (c *candidate) sign() string {
	switch {
	case c.refused != nil:
		return c.refused.sign
	case c.gone:
		return "gone"
	case c.bytes == nil && len(c.diags) > 0:
		return c.diags[0].Summary
	}
	return string(c.stamp.Hash[:])
}

// A namedReader reads the files that config files name.
type namedReader interface {
	ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error)
}
