package configsrc

import (
	"errors"
	"fmt"
	"io/fs"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// A candidate is a file that differs from its accepted state, with the results of a look or a write.
type candidate struct {
	path     string
	prev     *file        // the accepted state; nil: never accepted
	refused  *quarantined // set: unchanged since it was refused
	gone     bool
	named    bool          // gone, and an event named it since the look before
	touched  bool          // same content; only the stamp differs, or was racy
	stamp    catalog.Stamp // gone: of the folder, see tree.place
	bytes    []byte
	bodies   map[string][]byte    // replace the files on disk that file() names; nil: none
	texts    map[string][]byte    // of the files that it names, as they were decoded
	times    []catalog.ObjectTime // of its objects, as the authority of an edge has them; nil: the Sink's
	declared *catalog.Declared    // nil when it does not decode
	refs     []catalog.Ref        // of the objects decoded here
	counts   counts               // projects and domains among them
	claims   []claim              // in the order of claimsOf
	deps     []catalog.Dep
	diags    hclfile.Diagnostics // of the file itself
	fault    error               // a disk error in reading a file that file() names: the reason for diags
	cross    hclfile.Diagnostics // problems of the file with other files
	plain    bool                // contains a clear-text secret
	fresh    []string            // slugs of projects with uuid = "new"
	rejected bool
	suspect  bool            // needs a second look
	by       *catalog.Author // the client whose write it is; nil: it was found in the folder
}

// out reports whether the candidate's new state is not accepted, so that the old one stays.
func (c *candidate) out() bool { return c.rejected || c.suspect }

// A namedReader reads the files that config files name: a tree, or what an edge has received.
type namedReader interface {
	ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error)
}

// decode decodes the bytes and fills in the results. The Result is for callers that edit the bytes or point into them;
// it is too large to keep for every file.
func (c *candidate) decode(display string, t namedReader) *hclfile.Result {
	stamps, asked := map[string]catalog.Stamp{}, map[string]bool{}
	named := func(p string, b []byte) {
		if c.texts == nil {
			c.texts = map[string][]byte{}
		}
		c.texts[p] = b
	}
	r, diags := hclfile.Decode(display, c.bytes, hclfile.Options{ReadFile: func(p string) ([]byte, error) {
		asked[p] = true
		if b, ok := c.bodies[p]; ok {
			named(p, b)
			return b, nil
		}
		b, stamp, err := t.ReadNamed(p, folder.MaxTextBytes)
		if err != nil {
			c.failed(err)
			return nil, linkOrCause(err)
		}
		stamps[p] = stamp
		named(p, b)
		return b, nil
	}})
	c.diags = diags
	c.plain, c.fresh = r.PlainSecret, r.NewUUIDs
	for _, p := range r.Deps {
		stamp, ok := stamps[p]
		if !ok && !asked[p] { // a ca_file, which was not read yet
			var b []byte
			var err error
			if b, stamp, err = t.ReadNamed(p, folder.MaxTextBytes); err != nil {
				c.failed(err)
				c.diags = append(c.diags, hclfile.FileProblem(display, "ca_file "+p+": "+linkOrCause(err).Error(), ""))
			} else {
				named(p, b)
			}
		}
		c.deps = append(c.deps, catalog.Dep{Path: p, Stamp: stamp})
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

// failed records why a file that file() names could not be read, if the disk is at fault and not the files. It may be a
// file of another project, so its name is left out.
func (c *candidate) failed(err error) {
	if c.fault == nil && atomicfile.IsDiskFault(err) {
		c.fault = writeFault("read a file that the config file names", err)
	}
}

// positions decodes the bytes again to find the ranges of a diagnostic, which are too large to keep for every file.
func (c *candidate) positions(display string) *hclfile.Result {
	r, _ := hclfile.Decode(display, c.bytes, hclfile.Options{})
	return r
}

// locate decodes a file as it is on disk now.
func locate(t contents, display, path string) (*hclfile.Result, error) {
	b, _, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	r, _ := hclfile.Decode(display, b, hclfile.Options{})
	if r == nil {
		return nil, errors.New("does not decode")
	}
	return r, nil
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
