package hclfile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/resolver/catalog"
)

// Options of Decode.
type Options struct {
	// ReadFile reads a template body that file("path") names. The path is slash-separated, below the config folder and
	// already checked to be local. Nil: such bodies are left empty and the call is only checked for its form.
	ReadFile func(path string) ([]byte, error)
	Rules
}

// Rules are what only the service that accepts a file knows. The zero Rules are for files that were accepted before,
// perhaps by a node whose clock is ahead, or with other flags.
type Rules struct {
	Today string         // in UTC, as "2006-01-02": a proof of a later day is a warning. "": no day is too late
	Allow catalog.Allows // to which addresses attributes may lead with http
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
	// Source is the decoded file.
	Source *Source

	places map[refKey]*hclsyntax.Block // where each object is declared
	before int                         // lines of the file before Source, for a part of it
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

// Decode reads one config file. The path is for diagnostics only. All problems are diagnostics; Decode never panics,
// and the Result is never nil. Its time is proportional to the size of src. src must not change afterwards.
func Decode(path string, src []byte, o Options) (*Result, Diagnostics) {
	s := &Source{path: path, Src: src}
	res := &Result{Declared: &catalog.Declared{}, Source: s, places: map[refKey]*hclsyntax.Block{}}
	if ds := s.guard(); len(ds) > 0 {
		return res, ds
	}
	sound, syntax := s.parse()
	d := &decoder{Source: s, o: o, res: res, sound: sound, first: map[claim]hcl.Range{}}
	d.file()
	if len(bytes.TrimSpace(src)) == 0 {
		d.warn("", s.rangeAt(0, 0), "the file is empty", "write a block into it: "+example)
	}
	slices.Sort(res.Deps)
	res.Deps = slices.Compact(res.Deps)
	ds := slices.Concat(d.diags, syntax, s.guardKeys())
	if len(ds) == 0 {
		return res, nil
	}
	return res, ds.withoutKeys().capped()
}

// Diagnose makes a diagnostic at the definition of ref, found by Kind, Name and (except for projects) ProjectID. An
// object that this file does not declare is reported on the file as a whole.
func (r *Result) Diagnose(ref catalog.Ref, severity Severity, summary, detail string) Diagnostic {
	block := r.places[keyOf(ref)]
	if block == nil {
		d := FileProblem(r.Source.path, summary, detail)
		d.Severity = severity
		return d
	}
	return r.Source.diagnostic(severity, header(block), summary, detail)
}

// Position returns where ref's block begins, the zero Pos if this file does not declare it.
func (r *Result) Position(ref catalog.Ref) Pos {
	block := r.places[keyOf(ref)]
	if block == nil {
		return Pos{}
	}
	return position(block.TypeRange.Start)
}

// HasUUID reports whether the block of ref has a uuid line.
func (r *Result) HasUUID(ref catalog.Ref) bool {
	block := r.places[keyOf(ref)]
	return block != nil && block.Body.Attributes["uuid"] != nil
}

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
	if rng.Start.Byte >= d.sound || len(d.diags) > maxCollected {
		return
	}
	diag := d.diagnostic(severity, rng, summary, detail)
	diag.Rule = rule
	d.diags = append(d.diags, diag)
}

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
	if d.res.places[key] == nil {
		d.res.places[key] = block
	}
}

// file walks the top level.
func (d *decoder) file() {
	for _, attr := range InOrder(d.Body.Attributes) {
		if len(d.diags) <= maxCollected {
			d.unknownAttribute(attr, fileSchema)
		}
	}
	for _, block := range d.Body.Blocks {
		if block.Body == nil || len(d.diags) > maxCollected {
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
		case "edge":
			d.edge(block)
		case "webhook":
			d.webhook(block)
		case "login":
			d.login(block)
		case "inbound":
			d.inbound(block)
		case "sealing":
			d.sealing(block)
		default:
			d.unknownBlock(block, fileSchema)
		}
	}
}

// withoutKeys redacts full API keys in all texts: a key can be anywhere in a file, also in a label.
func (ds Diagnostics) withoutKeys() Diagnostics {
	for i := range ds {
		for _, text := range []*string{&ds[i].Summary, &ds[i].Detail} {
			for {
				start, end := catalog.FindKeyText([]byte(*text))
				if start < 0 {
					break
				}
				*text = (*text)[:start] + redacted + (*text)[end:]
			}
		}
	}
	return ds
}
