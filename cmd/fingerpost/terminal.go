package main

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/term"

	"fingerpost/cmd/fingerpost/progress"
)

// A terminal holds a command's input and outputs.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// progress starts a display of long work if stderr is a terminal; otherwise it returns nil.
func (t terminal) progress(what string) *progress.Line {
	if !isTerminal(t.err) {
		return nil
	}
	return progress.Start(t.err, what)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes one JSON document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
