package configsrc

import (
	"fmt"
	"path/filepath"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// What a caller is told of a write that is refused. Files are named relative to the config folder,
// since an answer must not tell where that is on the machine. A key that is limited to projects is not told what the files
// say beyond its own: neither who has a name that is taken, nor what is wrong in a line of a file, which may be another
// project's.

// conflictWith is the CONFLICT about something that is declared elsewhere. text says where.
func conflictWith(covers Coverage, what, text string) *catalog.Error {
	if covers != nil {
		text = "this " + what + " is taken"
	}
	e := &catalog.Error{Code: catalog.CodeConflict, Message: text}
	e.Problems.Addf(what, "%s", text)
	return e
}

// clash is the CONFLICT of an edit with another project of the same file, nil where there is none.
func (e *edit) clash() error {
	if e.want == nil {
		return nil
	}
	taken := map[claim]catalog.Ref{}
	for i := range e.declared.Projects {
		if i == e.at {
			continue
		}
		other := catalog.Declared{Projects: e.declared.Projects[i : i+1]}
		other.EachRef(func(ref catalog.Ref) {
			eachClaim(ref, func(_ string, cl claim) { taken[cl] = ref })
		})
	}
	var conflict *catalog.Error
	wanted := catalog.Declared{Projects: []catalog.ProjectConfig{*e.want}}
	wanted.EachRef(func(ref catalog.Ref) {
		eachClaim(ref, func(what string, cl claim) {
			if other, clashes := taken[cl]; clashes && conflict == nil {
				place := fmt.Sprintf("%s:%d", e.path, e.decoded.Position(other).Line)
				conflict = conflictWith(e.covers, what, conflictText(what, ref, place))
			}
		})
	})
	if conflict == nil {
		return nil
	}
	return conflict
}

// invalidFile says that a file has to be repaired before it can be written to.
func (s *Source) invalidFile(ds hclfile.Diagnostics, covers Coverage) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file is invalid; repair it first"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = "the config file is invalid, repair it first: " + s.position(d)
			if covers == nil {
				e.Message += ": " + s.relative(d.Summary)
			}
			break
		}
	}
	return e
}

// wouldBreak says that no file can hold what was asked for, such as a text that is too large for it. The problem is in what
// the caller wants to write, so a limited key is told, too.
func (s *Source) wouldBreak(ds hclfile.Diagnostics, covers Coverage) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file would be invalid with this change"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = "the config file would be invalid with this change: " + s.position(d) + ": " + s.relative(d.Summary)
			if covers == nil {
				e.Message += ": " + s.relative(d.Detail)
			}
			break
		}
	}
	return e
}

// position is where a diagnostic points, relative to the config folder.
func (s *Source) position(d hclfile.Diagnostic) string {
	if d.Start.Line == 0 { // the file as a whole
		return s.relative(d.File)
	}
	return fmt.Sprintf("%s:%d:%d", s.relative(d.File), d.Start.Line, d.Start.Column)
}

// relative takes the config folder out of the paths in a text, as display puts it there.
func (s *Source) relative(text string) string {
	return strings.ReplaceAll(text, filepath.Clean(s.o.Dir)+string(filepath.Separator), "")
}
