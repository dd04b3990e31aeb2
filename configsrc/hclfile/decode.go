package hclfile

import (
	"fmt"
	"slices"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Options of Decode.
type Options struct {
	// ReadFile reads a template body that file("path") names. The path is slash-separated, below the config folder and
	// already checked to be local. Nil: such bodies are left empty and the call is only checked for its form.
	ReadFile func(path string) ([]byte, error)
}

// A Result is one decoded file.
type Result struct {
	// Declared is the file's declarations, as far as they could be read. It is complete only if there are no errors.
	Declared *catalog.Declared
	// Deps are the paths of template bodies by file() and of ca_file, below the config folder, sorted, without duplicates.
	Deps []string
	// PlainSecret says that the file contains a secret in clear text.
	PlainSecret bool
	// NewUUIDs are the slugs of the projects with uuid = "new". They have the derived identity until the line is replaced.
	NewUUIDs []string

	source *Source
	places map[refKey]place
}

// A refKey is the part of a Ref that names an object within one file.
type refKey struct {
	kind    catalog.Kind
	name    string
	project int64
}

func keyOf(ref catalog.Ref) refKey {
	if ref.Kind == catalog.KindProject {
		return refKey{ref.Kind, ref.Name, 0}
	}
	return refKey{ref.Kind, ref.Name, ref.ProjectID}
}

// A place is where an object is declared.
type place struct {
	header hcl.Range // type and labels
	uuid   bool      // there is a uuid line
}

// Decode reads one config file. The path is for diagnostics only. All problems are diagnostics; Decode never panics,
// and the Result is never nil. Its time is proportional to the size of src. src must not change afterwards.
func Decode(path string, src []byte, o Options) (*Result, Diagnostics) {
	s := &Source{path: path, src: src}
	if ds := s.guard(); len(ds) > 0 {
		return newResult(s), ds.capped()
	}
	sound, syntax := s.parse()
	return s.decode(sound, syntax, o)
}

func newResult(s *Source) *Result {
	return &Result{Declared: &catalog.Declared{}, source: s, places: map[refKey]place{}}
}

// decode reads the tree.
func (s *Source) decode(sound int, syntax Diagnostics, o Options) (*Result, Diagnostics) {
	res := newResult(s)
	d := &decoder{Source: s, o: o, res: res, sound: sound, first: map[claim]hcl.Range{}}
	d.file()
	d.diags = slices.Concat(d.diags, syntax, s.guardKeys())
	slices.Sort(res.Deps)
	res.Deps = slices.Compact(res.Deps)
	d.withoutKeys()
	return res, d.diags.capped()
}

// Source returns the decoded file.
func (r *Result) Source() *Source { return r.source }

// Diagnose makes a diagnostic at the definition of ref, found by Kind, Name and (except for projects) ProjectID. An
// object that this file does not declare is reported on the file as a whole.
func (r *Result) Diagnose(ref catalog.Ref, severity Severity, summary, detail string) Diagnostic {
	at, ok := r.places[keyOf(ref)]
	if !ok {
		d := FileProblem(r.source.path, summary, detail)
		d.Severity = severity
		return d
	}
	return r.source.diagnostic(severity, at.header, summary, detail)
}

// Position returns where ref's block begins, the zero Pos if this file does not declare it.
func (r *Result) Position(ref catalog.Ref) Pos { return position(r.places[keyOf(ref)].header.Start) }

// HasUUID reports whether the block of ref has a uuid line.
func (r *Result) HasUUID(ref catalog.Ref) bool { return r.places[keyOf(ref)].uuid }

// A claim is something that a file may declare once.
type claim struct{ kind, name string }

// A decoder walks one file's syntax tree.
type decoder struct {
	*Source
	o     Options
	res   *Result
	diags Diagnostics
	sound int // bytes that the parser understood; later ones are not reported on
	first map[claim]hcl.Range
}

func (d *decoder) add(severity Severity, rule string, rng hcl.Range, summary, detail string) {
	if rng.Start.Byte >= d.sound || d.full() {
		return
	}
	diag := d.diagnostic(severity, rng, summary, detail)
	diag.Rule = rule
	d.diags = append(d.diags, diag)
}

// full reports whether there are more problems than are shown. It bounds the work for one file.
func (d *decoder) full() bool { return len(d.diags) > 2*maxDiagnostics }

func (d *decoder) errorf(rng hcl.Range, summary, detail string, args ...any) {
	d.add(Error, "", rng, summary, fmt.Sprintf(detail, args...))
}

func (d *decoder) warn(rule string, rng hcl.Range, summary, detail string) {
	d.add(Warning, rule, rng, summary, detail)
}

// once adds a diagnostic for the second claim of the same thing.
func (d *decoder) once(c claim, rng hcl.Range, summary, hint string) {
	if first, taken := d.first[c]; taken {
		d.errorf(rng, summary, "%s", joinLines("the first is at "+d.at(first), hint))
		return
	}
	d.first[c] = rng
}

// place records where an object is declared; of two the first counts.
func (d *decoder) place(kind catalog.Kind, name string, project int64, block *hclsyntax.Block) {
	key := refKey{kind, name, project}
	if _, taken := d.res.places[key]; !taken {
		d.res.places[key] = place{header: header(block), uuid: block.Body.Attributes["uuid"] != nil}
	}
}

// file walks the top level.
func (d *decoder) file() {
	for _, attr := range InOrder(d.body.Attributes) {
		if d.full() {
			break
		}
		d.unknownAttribute(attr, fileSchema)
	}
	for _, block := range d.body.Blocks {
		if block.Body == nil || d.full() {
			continue
		}
		switch block.Type {
		case "project":
			d.project(block)
		case "template":
			t := d.template(block, nil)
			d.res.Declared.Templates = append(d.res.Declared.Templates, t)
		case "defaults":
			d.defaults(block)
		case "key":
			d.key(block)
		case "sealing":
			d.sealing(block)
		default:
			d.unknownBlock(block, fileSchema)
		}
	}
}

// withoutKeys redacts full API keys in all texts: a key can be anywhere in a file, also in a label.
func (d *decoder) withoutKeys() {
	for i := range d.diags {
		diag := &d.diags[i]
		for _, text := range []*string{&diag.Summary, &diag.Detail} {
			for {
				start, end := catalog.FindKeyText([]byte(*text))
				if start < 0 {
					break
				}
				*text = (*text)[:start] + redacted + (*text)[end:]
			}
		}
	}
}
