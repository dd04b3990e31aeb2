package hclfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A Step is one edit, for tests that make several both ways: one after the other, and noted in one Draft.
type Step struct {
	Op   string // set, unset, rename, insert, remove
	At   BlockPath
	Name string
	Text string
}

// Alone makes the edit by itself.
func (s Step) Alone(src []byte) ([]byte, error) {
	switch s.Op {
	case "set":
		return SetAttribute(src, s.At, s.Name, s.Text)
	case "unset":
		return RemoveAttribute(src, s.At, s.Name)
	case "rename":
		return RenameLabel(src, s.At, s.Text)
	case "insert":
		return InsertBlock(src, s.At, s.Text)
	}
	return RemoveBlock(src, s.At[0], s.At[1:]...)
}

// Together makes all of them in one Draft.
func Together(src []byte, steps []Step) ([]byte, error) {
	d, err := drafted(src, steps)
	if err != nil {
		return nil, err
	}
	return d.made()
}

func drafted(src []byte, steps []Step) (*Draft, error) {
	d, err := openDraft(src)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		site, err := d.findSite(s.At)
		if err != nil {
			return nil, err
		}
		switch s.Op {
		case "set":
			err = site.set(s.Name, s.Text)
		case "unset":
			site.unset(s.Name)
		case "rename":
			err = site.rename(s.Text)
		case "insert":
			err = site.insert(s.Text)
		case "remove":
			d.remove(site.block)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Reparse makes all of them in one Draft, and tells in which way the tree that parseEdited makes of the result differs
// from a parse of the whole, "" for none. edited says whether it made one.
func Reparse(src []byte, steps []Step) (differ string, edited bool, err error) {
	d, err := drafted(src, steps)
	if err != nil {
		return "", false, err
	}
	out, err := d.Bytes()
	if err != nil {
		return "", false, err
	}
	return reparse(d, out)
}

// ReparseSplice is Reparse for any change of bytes.
func ReparseSplice(src []byte, from, to int, text string) (differ string, edited bool) {
	d, err := openDraft(src)
	if err != nil {
		return "", false
	}
	d.splices = []splice{{from, to, text}}
	differ, edited, _ = reparse(d, slices.Concat(src[:from], []byte(text), src[to:]))
	return differ, edited
}

func reparse(d *Draft, out []byte) (differ string, edited bool, err error) {
	s := &source{path: d.path, src: out}
	if !d.parseEdited(s) {
		return "", false, nil
	}
	whole, err := openDocument(out)
	switch {
	case err != nil:
		return "the whole does not parse: " + err.Error(), true, nil
	case reflect.DeepEqual(s.body, whole.body):
		differ, _ = redecode(d, out)
		return differ, true, nil
	}
	got, want := describe(s.body, 0), describe(whole.body, 0)
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	at = max(0, at-200)
	return fmt.Sprintf("got …%.400s\nwant …%.400s", got[at:], want[min(at, len(want)):]), true, nil
}

// Redecode makes all of them in one Draft, and tells in which way what it decodes of the result, by what the source says,
// differs from what the function Decode makes of it; "" for none, and where nothing is known of the source. kept says
// whether there was anything to take over.
func Redecode(src []byte, steps []Step) (differ string, kept bool, err error) {
	d, err := drafted(src, steps)
	if err != nil {
		return "", false, err
	}
	out, err := d.Bytes()
	if err != nil {
		return "", false, err
	}
	differ, kept = redecode(d, out)
	return differ, kept, nil
}

func redecode(d *Draft, out []byte) (differ string, kept bool) {
	before, ds := Decode(d.path, d.src, Options{})
	if len(ds) > 0 {
		return "", false
	}
	got, gotDs := d.Decode(out, Options{Sound: before.Declared})
	want, wantDs := Decode(d.path, out, Options{})
	if e := d.earlier(before.Declared); e != nil {
		for i, projects := 0, 0; i < len(e.blocks); i++ {
			if e.blocks[i].Type == "project" {
				k := e.keeper(i, projects)
				kept = kept || k.front+k.back > 0
				projects++
			}
		}
	}
	switch {
	case !reflect.DeepEqual(gotDs, wantDs):
		differ = fmt.Sprintf("diagnostics %v, want %v", gotDs, wantDs)
	case !reflect.DeepEqual(got.Declared, want.Declared):
		differ = fmt.Sprintf("declared %+v, want %+v", got.Declared, want.Declared)
	case !reflect.DeepEqual(got.places, want.places):
		differ = fmt.Sprintf("places %v, want %v", got.places, want.places)
	case !reflect.DeepEqual(got.Deps, want.Deps) || got.PlainSecret != want.PlainSecret || !reflect.DeepEqual(got.NewUUIDs, want.NewUUIDs):
		differ = fmt.Sprintf("%v %v %v, want %v %v %v", got.Deps, got.PlainSecret, got.NewUUIDs, want.Deps, want.PlainSecret, want.NewUUIDs)
	}
	return differ, kept
}

// describe prints a tree, as far as two that differ can be told apart by people.
func describe(body *hclsyntax.Body, level int) string {
	var b strings.Builder
	in := strings.Repeat("  ", level)
	fmt.Fprintf(&b, "%sbody %v %v\n", in, body.SrcRange, body.EndRange)
	for _, a := range inOrder(body.Attributes) {
		fmt.Fprintf(&b, "%s%s %v %v %v %T %+v\n", in, a.Name, a.SrcRange, a.NameRange, a.EqualsRange, a.Expr, a.Expr)
	}
	for _, x := range body.Blocks {
		fmt.Fprintf(&b, "%s%s %q %v %v %v %v\n%s", in, x.Type, x.Labels, x.TypeRange, x.LabelRanges, x.OpenBraceRange, x.CloseBraceRange, describe(x.Body, level+1))
	}
	return b.String()
}
