package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A saver replaces a file's content in one of the ways of editors.
type saver struct {
	name string
	save func(path string, content []byte) error
}

func savers() []saver {
	return []saver{{"write and rename", saveByRename}, {"write in place", saveInPlace}}
}

func saveByRename(path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

func saveInPlace(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}
