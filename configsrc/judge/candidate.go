package judge

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

// A Candidate is a file that differs from its accepted state, with the results of a look or a write.
type Candidate struct {
	Content  // as it is now; empty if it is gone or was not read
	Path     string
	Stamp    catalog.Stamp // gone: of the folder, see folder.Tree.FolderStamp
	Prev     *File         // the accepted state; nil: never accepted
	Refused  *Quarantined  // set: unchanged since it was refused
	Gone     bool
	Named    bool                      // gone, and an event named it since the look before
	Touched  bool                      // same content; only the stamp differs, or was racy
	By       *catalog.Author           // the client whose write it is; nil: it was found in the folder
	Others   map[int64]*catalog.Author // see catalog.FileChange
	Times    []catalog.ObjectTime      // of its objects, as the authority of an edge has them; nil: the Sink's
	Found    []byte                    // what was found, where the service has changed it since; nil: it has not
	Cross    hclfile.Diagnostics       // problems of the file with other files
	Rejected bool
	Suspect  bool // needs a second look
}

// Out reports whether the candidate's new state is not accepted, so that the old one stays.
func (c *Candidate) Out() bool { return c.Rejected || c.Suspect }

// SortByPath brings candidates into the order that a Case needs.
func SortByPath(list []*Candidate) {
	slices.SortFunc(list, func(a, b *Candidate) int { return strings.Compare(a.Path, b.Path) })
}

// A Content is what one decode of a config file gives.
type Content struct {
	Bytes    []byte
	Declared *catalog.Declared   // nil when it does not decode
	Refs     []catalog.Ref       // of the objects decoded here
	Claims   []Claim             // the uuids of its projects first, then the names of its domains, then the rest
	Counts   Counts              // of them
	Deps     []catalog.Dep       // the files that it names
	Texts    map[string][]byte   // their contents
	Diags    hclfile.Diagnostics // of the file itself
	Fault    error               // of the disk, in reading a file that file() names: the reason for diags
	Plain    bool                // contains a clear-text secret
	Fresh    []string            // slugs of projects with uuid = "new"
}

// Decode decodes the bytes and fills in the results. files has the files that they name. The Result is for callers that
// edit the bytes or point into them; it is too large to keep for every file. rules are as in hclfile.Options.
func (c *Content) Decode(display string, files Reader, rules hclfile.Rules) *hclfile.Result {
	stamps := map[string]catalog.Stamp{}
	read := func(p string) ([]byte, error) {
		b, stamp, err := files.ReadNamed(p, folder.MaxTextBytes)
		stamps[p] = stamp
		if err != nil {
			c.failed(err)
			return nil, linkOrCause(err)
		}
		if c.Texts == nil {
			c.Texts = map[string][]byte{}
		}
		c.Texts[p] = b
		return b, nil
	}
	r, diags := hclfile.Decode(display, c.Bytes, hclfile.Options{ReadFile: read, Rules: rules})
	c.Diags = diags
	c.Plain, c.Fresh = r.PlainSecret, r.NewUUIDs
	for _, p := range r.Deps {
		if _, asked := stamps[p]; !asked { // a ca_file, which was not read yet
			if _, err := read(p); err != nil {
				c.Diags = append(c.Diags, hclfile.FileProblem(display, "ca_file "+p+": "+err.Error(), ""))
			}
		}
		c.Deps = append(c.Deps, catalog.Dep{Path: p, Stamp: stamps[p]})
	}
	if sealing := r.Declared.Sealing; sealing != nil {
		for _, recipient := range sealing.Recipients {
			if err := seal.CheckRecipient(recipient); err != nil {
				c.Diags = append(c.Diags, r.Diagnose(catalog.Ref{Kind: catalog.KindSealing}, hclfile.Error,
					fmt.Sprintf("recipient %q is no age X25519 recipient: %v", recipient, err),
					"\"fingerpost secrets keygen\" prints one"))
			}
		}
	}
	if c.Diags.HasErrors() {
		return r
	}
	c.Declared = r.Declared
	c.Refs = r.Declared.Refs()
	c.Claims, c.Counts = claimsOf(c.Refs)
	return r
}

// failed records why a file that file() names could not be read, if the disk is at fault and not the files.
func (c *Content) failed(err error) {
	if c.Fault == nil && atomicfile.IsDiskFault(err) {
		c.Fault = err
	}
}

// Positions decodes a file again to find the ranges of a diagnostic, which are too large to keep for every file.
func Positions(display string, src []byte) *hclfile.Result {
	r, _ := hclfile.Decode(display, src, hclfile.Options{})
	return r
}

func linkOrCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file below the config folder")
	}
	return atomicfile.Cause(err)
}

// A Quarantined file's new content is not served; its last good declaration is.
type Quarantined struct {
	Sign  string // of the refused state
	Diags hclfile.Diagnostics
	By    *catalog.Author // who has brought it; nil: somebody has saved it here
	// broken are the problems of the file by itself: as long as its stamp and those of its dependencies are unchanged, it
	// need not be parsed again. Empty if the problem is with other files, or a stamp cannot show a change.
	Broken hclfile.Diagnostics
	Stamp  catalog.Stamp
	Deps   []catalog.Dep
}

// Sign identifies one state of a file.
func (c *Candidate) Sign() string {
	switch {
	case c.Refused != nil:
		return c.Refused.Sign
	case c.Gone:
		return "gone"
	case c.Bytes == nil && len(c.Diags) > 0:
		return c.Diags[0].Summary
	}
	return string(c.Stamp.Hash[:])
}

// A Reader reads the files that config files name.
type Reader interface {
	ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error)
}
