package plumbing

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// maxFilters bounds the paths whose filter is known.
const maxFilters = 10_000

// Attributes knows which paths a filter of git stands for (git-crypt, LFS and the like), from the attributes in the
// work tree, as git check-attr has them. A git runs for a path only if a file of attributes names a filter at all, and
// again only if one of those files has changed. It is safe for concurrent use.
type Attributes struct {
	git   *Command
	files []string // that are for every path

	mu    sync.Mutex // guards what follows
	known map[string]filterAt
}

// A filterAt is the filter of a path while the files of attributes are in a state.
type filterAt struct{ state, filter string }

// Attributes returns the attributes of the work tree.
func (g *Store) Attributes(ctx context.Context) *Attributes {
	a := &Attributes{git: g.Command, known: map[string]filterAt{},
		files: []string{filepath.Join(g.GitDir, "info", "attributes"), "/etc/gitattributes"}}
	if user, err := g.Run(ctx, "config", "--type=path", "core.attributesFile"); err == nil && user != "" {
		a.files = append(a.files, user)
	} else if home, err := os.UserConfigDir(); err == nil {
		a.files = append(a.files, filepath.Join(home, "git", "attributes"))
	}
	return a
}

// FilterOf returns the name of the filter of a path in the repository, also of one that no setting defines; "" for
// none.
func (a *Attributes) FilterOf(ctx context.Context, name string) (string, error) {
	state, named := a.state(name)
	a.mu.Lock()
	known, is := a.known[name]
	a.mu.Unlock()
	if is && known.state == state {
		return known.filter, nil
	}
	filter := ""
	if named {
		found, err := a.filters(ctx, []byte(name+"\x00"))
		if err != nil {
			return "", err
		}
		filter = found[name]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxFilters {
		clear(a.known)
	}
	a.known[name] = filterAt{state, filter}
	return filter, nil
}

// Filters returns the filters of the paths below a folder of the work tree that git keeps, by path, and that of a path
// of a new file there.
func (a *Attributes) Filters(ctx context.Context, prefix, fresh string) (map[string]string, error) {
	kept, err := a.git.Call(ctx, LocalLimit, nil, nil, "--literal-pathspecs", "ls-files", "-z", "--full-name", "--",
		filepath.Join(a.git.Dir, filepath.FromSlash(prefix)))
	if err != nil {
		return nil, err
	}
	return a.filters(ctx, append(kept, fresh+"\x00"...))
}

// filters asks git for the filters of paths, each with a zero byte at its end.
func (a *Attributes) filters(ctx context.Context, paths []byte) (map[string]string, error) {
	out, err := a.git.Call(ctx, LocalLimit, nil, paths, "-C", a.git.Dir, "check-attr", "--stdin", "-z", "filter")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for f := bytes.Split(out, []byte{0}); len(f) >= 3; f = f[3:] {
		switch value := string(f[2]); value {
		case "unspecified", "unset", "set": // git filters nothing then
		default:
			found[string(f[0])] = value
		}
	}
	return found, nil
}

// state describes the files of attributes that are for a path, and reports whether one of them speaks of filters.
func (a *Attributes) state(name string) (state string, named bool) {
	files := a.files
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		files = append(files[:len(files):len(files)], filepath.Join(a.git.Dir, filepath.FromSlash(dir), ".gitattributes"))
		if dir == "." {
			break
		}
	}
	var text strings.Builder
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			text.WriteString("-")
			continue
		}
		fmt.Fprintf(&text, "%d %d;", info.Size(), info.ModTime().UnixNano())
		b, err := os.ReadFile(file)
		named = named || err != nil || bytes.Contains(b, []byte("filter"))
	}
	return text.String(), named
}
