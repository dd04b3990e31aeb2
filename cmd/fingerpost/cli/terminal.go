package cli

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/term"
)

// A Terminal holds a command's input and outputs.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
}

// Progress starts a display of long work if stderr is a terminal; otherwise it returns nil.
func (t Terminal) Progress(what string) *Progress {
	if !IsTerminal(t.Err) {
		return nil
	}
	return startProgress(t.Err, what)
}

// IsTerminal reports whether w is a file that a person looks at.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// PrintJSON writes one JSON document.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
