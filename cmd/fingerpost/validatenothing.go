package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
)

// maxNear is how many near names a message has.
const maxNear = 5

// nothingToCheck returns a problem for each path without a config file: a CI job whose path is wrong must not be green.
// No paths mean dir. A folder that cannot be read has a problem already.
func nothingToCheck(dir string, paths []string) (ds hclfile.Diagnostics) {
	if len(paths) == 0 {
		paths = []string{dir}
	}
	for _, p := range paths {
		files, near, err := namesBelow(p)
		if files || err != nil {
			continue
		}
		detail := "config files end in .hcl"
		if len(near) > 0 {
			detail += "; near names: " + strings.Join(near[:min(len(near), maxNear)], ", ")
		}
		ds = append(ds, hclfile.FileProblem(p, "there is no config file", detail))
	}
	return ds
}

// namesBelow reports whether p is a config file or a folder with one, and lists the names that may have been meant as
// one.
func namesBelow(p string) (files bool, near []string, err error) {
	// A link to the folder is followed, as serve does.
	if real, err := filepath.EvalSymlinks(p); err == nil {
		p = real
	}
	err = filepath.WalkDir(p, func(at string, entry fs.DirEntry, err error) error {
		name := entryName(at, entry)
		switch {
		case err != nil && at == p:
			return err
		case err != nil:
			return nil //nolint:nilerr // the loader reports what cannot be read
		case entry.IsDir():
			if at != p && folder.IgnoredName(name) {
				return filepath.SkipDir
			}
		case folder.IsConfigName(name) || entry.Type()&os.ModeSymlink != 0 && leadsToFolder(at):
			files = true // a linked folder is left to the loader
			return filepath.SkipAll
		case strings.Contains(strings.ToLower(name), ".hcl") || at == p:
			near = append(near, fmt.Sprintf("%q", filepath.Base(at)))
		}
		return nil
	})
	return files, near, err
}

func entryName(at string, entry fs.DirEntry) string {
	if entry == nil {
		return filepath.Base(at)
	}
	return entry.Name()
}

func leadsToFolder(at string) bool {
	info, err := os.Stat(at)
	return err == nil && info.IsDir()
}
