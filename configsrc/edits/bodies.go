package edits

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// maxBodyInline is the longest body that the API writes into a config file. A body of 480 KB there costs each later
// write to that file 180 ms of CPU, and each write of the body 400 ms; in a file of its own, 8 ms and 14 ms.
const maxBodyInline = 64 << 10

// newBody implements Draft.BodyFile: a long body goes to a new file next to the config file, acme.WELCOME.html or
// acme.WELCOME.de.html. A name that something else has gets a number.
func (p *projectTarget) newBody(w *attempt, at hcledit.TextPlace, text string) (name string, err error) {
	if len(text) <= maxBodyInline {
		return "", nil
	}
	ending := ".txt"
	if at.Attr == "body_html" {
		ending = ".html"
	}
	dir, _ := path.Split(w.path)
	stem := dir + p.project.Project.Slug + "." + at.Code
	if at.Locale != "" {
		stem += "." + at.Locale
	}
	for n := 1; n <= 100; n++ {
		name = stem
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		name += ending
		if p.created[name] != nil || len(w.UsersOf(name)) > 0 {
			continue
		}
		f, err := w.ws.CreateSwap(name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if p.created == nil {
			p.created = map[string]*Swap{}
		}
		p.created[name] = f
		return name, nil
	}
	return "", &catalog.Error{Code: catalog.CodeConflict,
		Message: fmt.Sprintf("the body is longer than %d KiB and goes to a file next to %s, but %s and 99 names like it are "+
			"taken; remove those that nothing uses", maxBodyInline>>10, w.path, stem+ending)}
}

// addBodies adds the files that hold the draft's bodies to the update, with their new contents.
func (p *projectTarget) addBodies(w *attempt) error {
	u := w.update
	for _, b := range p.draft.Bodies() {
		if b.Creates {
			f := p.created[b.Path]
			f.Content = bodyBytes(nil, b.Text)
			u.Files = append(u.Files, f)
			continue
		}
		if err := w.soleUse(b); err != nil {
			return err
		}
		f, now, err := w.ws.OpenSwap(w.tree, b.Path)
		if err != nil {
			return err
		}
		if !w.decodedWith(b.Path, f.Old) {
			return atomicfile.ErrChanged // since the config file was decoded
		}
		f.Content = bodyBytes(now, b.Text)
		u.Files = append(u.Files, f)
	}
	return nil
}

// soleUse refuses to write a file that other templates use too: they would change with it. It also refuses to write a
// config file as text.
func (w *attempt) soleUse(b hcledit.BodyEdit) error {
	w.Known.RLock()
	elsewhere := slices.ContainsFunc(w.Table.UsersOf(b.Path), func(f *judge.File) bool { return f.Path != w.path })
	w.Known.RUnlock()
	why := ""
	switch {
	case folder.IsConfigPath(b.Path):
		why = "which is a config file"
	case b.Shared, elsewhere:
		why = "from which something else takes its text, too"
	default:
		return nil
	}
	return &catalog.Error{Code: catalog.CodeExpression,
		Message: fmt.Sprintf("%s:%d:%d: %s is file(%q), %s; give it a file or a text of its own first",
			w.path, b.Pos.Line, b.Pos.Column, b.Where, b.Path, why)}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// bodyBytes returns the file content for a text, given the previous content: the exact text, after the byte order mark
// if there was one. A text that begins with a mark gets a second one before it, because readers drop the first.
func bodyBytes(was []byte, text string) []byte {
	out := []byte(text)
	if bytes.HasPrefix(was, byteOrderMark) || bytes.HasPrefix(out, byteOrderMark) {
		out = append(bytes.Clone(byteOrderMark), out...)
	}
	return out
}
