package gitrepo

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// A pulledFile is what the last pull has made of a file.
type pulledFile struct {
	id     string // of its blob; "" if the file is gone
	author catalog.Author
}

// notePulled remembers who has changed which file of the config folder between two commits. Call it before the files
// change: they are looked at as soon as they do.
func (r *Repo) notePulled(ctx context.Context, from, to string, changes map[string]plumbing.Entry) {
	pulled := map[string]pulledFile{}
	for path, e := range changes {
		if below, inside := strings.CutPrefix(path, r.prefix); inside {
			pulled[below] = pulledFile{e.ID, catalog.Author{Door: catalog.DoorGit, Commit: to}}
		}
	}
	what := to
	if from != "" {
		what = from + ".." + to
	}
	// The newest commit comes first. Without its answer the entries name the commit that the branch came to.
	out, err := r.git.Run(ctx, "log", "--no-renames", "--name-only", "--format=%x01%H %an <%ae>", what, "--")
	if err == nil {
		var by catalog.Author
		named := map[string]bool{}
		for line := range strings.SplitSeq(out, "\n") {
			if head, is := strings.CutPrefix(line, "\x01"); is {
				id, who, _ := strings.Cut(head, " ")
				by = catalog.Author{Door: catalog.DoorGit, Commit: id, Actor: plumbing.Clean(who)}
				continue
			}
			below, inside := strings.CutPrefix(line, r.prefix)
			if p, is := pulled[below]; inside && is && !named[below] {
				p.author, named[below] = by, true
				pulled[below] = p
			}
		}
	}
	r.mu.Lock()
	r.pulled = pulled
	r.mu.Unlock()
}

// A cutOffFile is what the last write of an earlier process has made of a file, or was about to.
type cutOffFile struct {
	content []byte
	author  catalog.Author
}

// noteCutOff remembers the writes of an earlier process that are in no commit: a crash may have cut one off when its
// file was replaced, and nothing told of it yet.
func (r *Repo) noteCutOff() {
	cutOff := map[string]cutOffFile{}
	for _, id := range slices.Sorted(maps.Keys(r.earlier)) {
		var w catalog.FileWrite
		if id == intentID || json.Unmarshal(r.earlier[id], &w) != nil {
			continue
		}
		for _, f := range w.Files {
			cutOff[f.Path] = cutOffFile{f.After, w.Author}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutOff = cutOff
}

// AuthorOf returns who has brought this content of a file below the config folder with the last pull, or with a write
// that a crash has cut off; nil if nobody has: then a person has saved it. nil content stands for a file that is gone.
// It may be called from any goroutine.
func (r *Repo) AuthorOf(path string, content []byte) *catalog.Author {
	r.mu.Lock()
	p, found := r.pulled[path]
	c, cut := r.cutOff[path]
	r.mu.Unlock()
	if cut && (content == nil) == (c.content == nil) && bytes.Equal(content, c.content) {
		return &c.author
	}
	if !found || (content == nil) != (p.id == "") || content != nil && r.git.ID("blob", content) != p.id {
		return nil
	}
	by := p.author
	return &by
}
