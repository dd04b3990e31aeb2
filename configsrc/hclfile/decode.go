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
	// Sound is what the file has declared before, where that came without any diagnostic: a template that is the same as
	// one in it is not checked again. May be nil. It is only read. For Draft.Decode it is what the Draft's source declares.
	Sound *catalog.Declared
}

// sound reports that t was checked before.
func (o *Options) sound(t *catalog.Template) bool {
	if o.Sound == nil || t.BodyHTML == "" && t.BodyText == "" { // of those it counts where they stand
		return false
	}
	in := o.Sound.Templates
	for i := range o.Sound.Projects {
		if p := &o.Sound.Projects[i]; t.ProjectID != 0 && p.Project.ID == t.ProjectID {
			in = p.Templates
		}
	}
	for i := range in {
		if in[i] == *t {
			return true
		}
	}
	return false
}

// A Result is one decoded file.
type Result struct {
	// Declared is what the file declares, as far as it could be read; to be trusted only without errors.
	Declared *catalog.Declared
	// Deps are the paths of template bodies by file() and of ca_file, below the config folder, sorted, each once.
	Deps []string
	// PlainSecret says that a secret stands in the file in clear text.
	PlainSecret bool
	// NewUUIDs are the slugs of the projects that say uuid = "new": they have the derived identity until the line is
	// replaced.
	NewUUIDs []string

	source *source
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

// Decode reads one config file. The path names it in diagnostics and may be anything. It never fails otherwise than by
// diagnostics, never panics and takes time in proportion to the size of src; src must not change afterwards.
// The Result is never nil.
func Decode(path string, src []byte, o Options) (*Result, Diagnostics) {
	s := &source{path: path, src: src}
	if ds := s.guard(); len(ds) > 0 {
		return newResult(s), ds.capped()
	}
	sound, syntax := s.parse()
	return s.decode(sound, syntax, o)
}

func newResult(s *source) *Result {
	return &Result{Declared: &catalog.Declared{}, source: s, places: map[refKey]place{}}
}

// decode reads the tree.
func (s *source) decode(sound int, syntax Diagnostics, o Options) (*Result, Diagnostics) {
	return s.decodeAfter(nil, sound, syntax, o)
}

// decodeAfter is decode of what edits have made of a file that said something before; nil: nothing is known of it.
func (s *source) decodeAfter(before *earlier, sound int, syntax Diagnostics, o Options) (*Result, Diagnostics) {
	res := newResult(s)
	d := &decoder{source: s, o: o, before: before, res: res, sound: sound, first: map[claim]hcl.Range{}}
	d.file()
	d.diags = slices.Concat(d.diags, syntax, s.guardKeys())
	slices.Sort(res.Deps)
	res.Deps = slices.Compact(res.Deps)
	d.withoutKeys()
	return res, d.diags.capped()
}

// Diagnose makes a diagnostic at the definition of ref, found by Kind, Name and (but for projects) ProjectID. What this
// file does not declare is reported on the file as a whole.
func (r *Result) Diagnose(ref catalog.Ref, severity Severity, summary, detail string) Diagnostic {
	at, ok := r.places[keyOf(ref)]
	if !ok {
		d := FileProblem(r.source.path, summary, detail)
		d.Severity = severity
		return d
	}
	return r.source.diagnostic(severity, at.header, summary, detail)
}

// Position is where ref's block begins, the zero Pos if this file does not declare it.
func (r *Result) Position(ref catalog.Ref) Pos { return position(r.places[keyOf(ref)].header.Start) }

// HasUUID reports whether the block of ref has a uuid line.
func (r *Result) HasUUID(ref catalog.Ref) bool { return r.places[keyOf(ref)].uuid }

// A Parsed is a file that was decoded without errors, to be decoded again for less work: it shares nothing that can be
// changed with what was decoded from it. It is for one goroutine at a time.
type Parsed struct {
	source *source
	result *Result // of the next Decode; nil: it has to be made
}

// Parsed keeps what r was decoded from, without errors.
func (r *Result) Parsed() *Parsed {
	r.source.lexed = nil // large, and of little use once all edits have been made
	return &Parsed{source: r.source}
}

// ParsedWhole is Parsed that keeps a copy of what the file declares, too, where that is for good: ds, which came with r,
// are none, and no other file has a part in it. Nothing of r may have been changed.
func (r *Result) ParsedWhole(ds Diagnostics) *Parsed {
	p := r.Parsed()
	if len(ds) == 0 && len(r.Deps) == 0 {
		whole := *r
		whole.Declared = r.Declared.Clone()
		p.result = &whole
	}
	return p
}

// Decode is what the function Decode would make of the file, with the path that it was given.
func (p *Parsed) Decode(o Options) (*Result, Diagnostics) {
	if r := p.result; r != nil {
		p.result = nil // the caller's alone
		return r, nil
	}
	return p.source.decode(len(p.source.src)+1, nil, o)
}

// Size is about how many bytes of memory p takes, rather more than less.
func (p *Parsed) Size() int { return 2*len(p.source.src) + treeSize(p.source.body) }

// treeSize counts nodes, which is nearly all that there is: their structs, maps and, with what was decoded, strings.
func treeSize(body *hclsyntax.Body) int {
	const block, attribute, part = 1000, 500, 150
	size := attribute * len(body.Attributes)
	for _, a := range body.Attributes {
		switch e := a.Expr.(type) {
		case *hclsyntax.TemplateExpr:
			size += part * len(e.Parts)
		case *hclsyntax.TupleConsExpr:
			size += attribute * len(e.Exprs)
		case *hclsyntax.FunctionCallExpr:
			size += attribute * len(e.Args)
		}
	}
	for _, b := range body.Blocks {
		size += block + treeSize(b.Body)
	}
	return size
}

// A claim is something that one file may say only once.
type claim struct{ kind, name string }

// A decoder walks one file's syntax tree.
type decoder struct {
	*source
	o      Options
	before *earlier // what the file said; may be nil
	res    *Result
	diags  Diagnostics
	sound  int // bytes that the parser understood; nothing is said about later ones
	first  map[claim]hcl.Range
}

func (d *decoder) add(severity Severity, rule string, rng hcl.Range, summary, detail string) {
	if rng.Start.Byte >= d.sound || d.full() {
		return
	}
	diag := d.diagnostic(severity, rng, summary, detail)
	diag.Rule = rule
	d.diags = append(d.diags, diag)
}

// full reports that there are more problems than will be shown. It bounds the work that a file can make.
func (d *decoder) full() bool { return len(d.diags) > 2*maxDiagnostics }

func (d *decoder) errorf(rng hcl.Range, summary, detail string, args ...any) {
	d.add(Error, "", rng, summary, fmt.Sprintf(detail, args...))
}

func (d *decoder) warn(rule string, rng hcl.Range, summary, detail string) {
	d.add(Warning, rule, rng, summary, detail)
}

// once reports a second one of something that there may be one of.
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
	for _, attr := range inOrder(d.body.Attributes) {
		if d.full() {
			break
		}
		d.unknownAttribute(attr, fileSchema)
	}
	for i, block := range d.body.Blocks {
		if block.Body == nil || d.full() {
			continue
		}
		switch block.Type {
		case "project":
			d.project(block, d.before.keeper(i, len(d.res.Declared.Projects)))
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

// withoutKeys makes sure that no text quotes a full key, which can stand anywhere, in a label too.
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
