package edits

import (
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// Origins say where what is served comes from.
type Origins struct{ base *Base }

// OriginsOf returns the Origins of a Base.
func OriginsOf(b *Base) Origins { return Origins{b} }

// Explain returns a project as it is served, with the origin of each value. Both come from the last good bytes of the
// project's file and of the file with the defaults block, so they always agree. Paths are relative to the config
// folder. A project that no file declares is a NOT_FOUND *catalog.Error. It may be called from any goroutine.
func (o Origins) Explain(project catalog.UUID) (*catalog.Explained, error) {
	path, file, declared, err := o.declared(project)
	if err != nil {
		return nil, err
	}
	var defaults hclfile.PlacedResult
	if path, found := o.base.FileOf(judge.ClaimOf(string(catalog.KindDefaults), "")); found {
		if defaults.Result, err = o.lastPart(path, hclfile.DecodeDefaults); err != nil {
			return nil, err
		}
		defaults.Path = path
	}
	return hclfile.Explain(declared, hclfile.PlacedResult{Path: path, Result: file}, defaults), nil
}

// FileOf returns the path of the file that declares a project, below the config folder. It may be called from any
// goroutine.
func (o Origins) FileOf(project catalog.UUID) (path string, ok bool) {
	return o.base.FileOf(judge.ProjectClaim(project))
}

// declared returns a project as the last good bytes of its file declare it, with the file, perhaps that project's block
// alone.
func (o Origins) declared(project catalog.UUID) (path string, file *hclfile.Result, p *catalog.ProjectConfig,
	err error) {
	path, found := o.FileOf(project)
	if !found {
		return "", nil, nil, catalog.NotFound("project")
	}
	block := func(path string, src []byte) *hclfile.Result { return hclfile.DecodeProject(path, src, project) }
	if file, err = o.lastPart(path, block); err != nil {
		return "", nil, nil, err
	}
	i := slices.IndexFunc(file.Declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == project })
	if i < 0 {
		return "", nil, nil, Busy("the files have just changed")
	}
	return path, file, &file.Declared.Projects[i], nil
}

// A Block is a block of a config file as it stands there, without its secrets.
type Block struct {
	File string `json:"file"` // below the config folder
	Line int    `json:"line"` // of its first line
	Text string `json:"text"` // whole lines
}

// Block returns a project's block out of the last good bytes of its file. Its secrets are shown as hclfile.Masked
// shows them.
func (o Origins) Block(project catalog.UUID) (*Block, error) {
	path, file, declared, err := o.declared(project)
	if err != nil {
		return nil, err
	}
	at := file.Lines(catalog.Ref{Kind: catalog.KindProject, Name: declared.Project.Slug})
	var text strings.Builder
	line := file.Before()
	for l := range strings.Lines(string(hclfile.Masked(file.Source.Src))) {
		if line++; line >= at.Block && line <= at.End {
			text.WriteString(l)
		}
	}
	return &Block{File: path, Line: at.Block, Text: text.String()}, nil
}

// lastPart is LastDecoded for one block, if that can be found.
func (o Origins) lastPart(path string, block func(path string, src []byte) *hclfile.Result) (*hclfile.Result, error) {
	b, err := o.base.Facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	if r := block(path, b); r != nil {
		return r, nil
	}
	return judge.Positions(path, b), nil
}
