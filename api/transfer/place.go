package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Folder is the config folder that receives an Import.
type Folder interface {
	// Check loads the folder as it would be with these files, by name, and returns all problems.
	Check(files map[string][]byte) (hclfile.Diagnostics, error)
	// Create writes a file that must not be there yet.
	Create(name string, content []byte) error
	// Edit replaces a file's content by the result of edit. It fails if edit fails.
	Edit(name string, edit func(src []byte) ([]byte, error)) error
}

// An ImportedFile is the result for one file.
type ImportedFile struct {
	File   string `json:"file"`
	Result string `json:"result"`
}

// Results of an ImportedFile.
const (
	Written   = "written"
	Replaced  = "replaced"
	Unchanged = "unchanged"
)

// Imported is what "import --json" prints.
type Imported struct {
	Files    []ImportedFile `json:"files"`
	Secrets  []string       `json:"secrets"`  // to be supplied, by file
	NotKept  []string       `json:"notKept"`  // what files cannot express, or the server does not return
	Problems []string       `json:"problems"` // why nothing was written
}

// Place determines the result for each file in dir, and touches nothing. Existing files with other content are
// Problems, unless force says to replace them; so are errors that the folder would have, whose diagnostics it returns.
func (im *Import) Place(dir string, folder Folder, force bool) (hclfile.Diagnostics, error) {
	im.placed, im.todo, im.replaced = []ImportedFile{}, map[string][]byte{}, map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(im.files)) {
		path, result := filepath.Join(dir, name), Written
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case bytes.Equal(old, im.files[name]):
			result = Unchanged
		case force:
			result, im.replaced[name] = Replaced, old
		default:
			im.problem("%s is there already, with other content (--force replaces it)", path)
		}
		if result != Unchanged {
			im.todo[name] = im.files[name]
		}
		im.placed = append(im.placed, ImportedFile{path, result})
	}
	ds, err := folder.Check(im.todo)
	if err != nil || !ds.HasErrors() {
		return nil, err
	}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			im.problem("with the imported files there would be an error: %s: %s", d.File, d.Summary)
		}
	}
	return ds, nil
}

// importWriters is how many files are written at once: the time goes into the disk's syncs.
const importWriters = 8

// Write writes the files that Place has found to differ; those that it replaces must be unchanged since. Each file is
// written whole or not at all.
func (im *Import) Write(ctx context.Context, folder Folder, progress Progress) (*Imported, error) {
	names := slices.Sorted(maps.Keys(im.todo))
	next := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range importWriters {
		wg.Go(func() {
			for name := range next {
				if err := writeFile(folder, name, im.todo[name], im.replaced[name]); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	written := 0
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		next <- name
		written++
		progress.set(written, len(names))
	}
	close(next)
	wg.Wait()
	if failed == nil && written < len(names) {
		failed = fmt.Errorf("interrupted after %d of %s; each is whole, and the same command writes the others", written,
			catalog.Count(len(names), "file"))
	}
	return &Imported{Files: im.placed, Secrets: nonNil(im.secrets), NotKept: nonNil(im.notKept), Problems: []string{}},
		failed
}

func writeFile(folder Folder, name string, content, old []byte) error {
	if old == nil {
		return folder.Create(name, content)
	}
	return folder.Edit(name, func(src []byte) ([]byte, error) {
		if !bytes.Equal(src, old) {
			return nil, fmt.Errorf("replace %s: somebody saved it meanwhile, and it was left as it is", name)
		}
		return content, nil
	})
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
