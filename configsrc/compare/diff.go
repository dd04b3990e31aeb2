package compare

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
)

// A File is a file of which two states differ.
type File struct {
	Path          string // slash-separated below the config folder
	Before, After []byte // nil: there is no such file
	// Shared: the file declares more than the reader's key covers, so Diff shows changed lines only. Hidden: some changed
	// lines belong to others, and Diff shows none.
	Shared, Hidden bool
}

// Diff returns the change of files as a unified diff, "" if nothing changes. A sealed secret is shown as sealed("…"), any
// other secret and a key's hash as (redacted).
func Diff(files []File) string {
	var out strings.Builder
	for i := range files {
		files[i].diff(&out)
	}
	return out.String()
}

// diff compares the true contents, so that a changed secret shows up, and prints the lines without secrets.
func (f *File) diff(out *strings.Builder) {
	from, to := "a/"+f.Path, "b/"+f.Path
	if f.Before == nil {
		from = "/dev/null"
	}
	if f.After == nil {
		to = "/dev/null"
	}
	raw := diff.Diff(from, f.Before, to, f.After)
	if raw == nil {
		return
	}
	fmt.Fprintf(out, "--- %s\n+++ %s\n", from, to)
	if f.Hidden {
		return
	}
	before, after := f.lines(f.Before), f.lines(f.After)
	var h hunk
	for line := range bytes.Lines(raw) {
		switch {
		case bytes.HasPrefix(line, []byte("@@ ")):
			h.flush(out)
			_, _ = fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@", &h.old, &h.oldLines, &h.new, &h.newLines)
			h.atOld, h.atNew = max(h.old, 1), max(h.new, 1)
		case h.oldLines+h.newLines == 0, line[0] == '\\': // the header; the note about a missing line end comes with its line
			if line[0] == '\\' {
				h.text = append(h.text, string(line))
			}
		case line[0] == '-':
			h.text = append(h.text, "-"+before[h.atOld-1])
			h.atOld++
		case line[0] == '+':
			h.text = append(h.text, "+"+after[h.atNew-1])
			h.atNew++
		default:
			if f.Shared {
				h.cut(out)
			} else {
				h.text = append(h.text, " "+after[h.atNew-1])
			}
			h.atOld, h.atNew = h.atOld+1, h.atNew+1
		}
	}
	h.flush(out)
}

// lines returns a file's lines with their line ends and without its secrets. A last line without a line end gets one.
func (f *File) lines(src []byte) (lines []string) {
	if folder.IsConfigPath(f.Path) {
		src = hclfile.Masked(src)
	}
	for line := range strings.Lines(string(src)) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		lines = append(lines, line)
	}
	return lines
}

// A hunk is a part of a diff that is not printed yet.
type hunk struct {
	old, oldLines, new, newLines int // from its header
	atOld, atNew                 int // of the next line
	text                         []string
}

// flush prints the hunk.
func (h *hunk) flush(out *strings.Builder) {
	if len(h.text) > 0 {
		fmt.Fprintf(out, "@@ -%s +%s @@\n%s", lineRange(h.old, h.oldLines), lineRange(h.new, h.newLines), strings.Join(h.text,
			""))
	}
	*h = hunk{}
}

// cut prints the changed lines before a line that is not shown, as a hunk of its own.
func (h *hunk) cut(out *strings.Builder) {
	next := *h
	next.text = nil
	if len(h.text) > 0 {
		h.oldLines, h.newLines = 0, 0
		for _, line := range h.text {
			switch line[0] {
			case '-':
				h.oldLines++
			case '+':
				h.newLines++
			}
		}
		h.old, h.new = h.atOld-h.oldLines, h.atNew-h.newLines
		if h.oldLines == 0 { // a range without lines is named by the line before it
			h.old--
		}
		if h.newLines == 0 {
			h.new--
		}
		h.flush(out)
	}
	*h = next
}

func lineRange(at, lines int) string {
	if lines == 1 {
		return strconv.Itoa(at)
	}
	return strconv.Itoa(at) + "," + strconv.Itoa(lines)
}
