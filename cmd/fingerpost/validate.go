package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
)

func newValidate(t cli.Terminal) *cobra.Command {
	asJSON, data, format, stdinName := false, "", "", ""
	var allows cli.AllowFlags
	cmd := &cobra.Command{
		Use:   "validate [PATH… | -]",
		Short: "Check the files as serve would, and print every problem",
		Long: "Checks the config folder, or the folders and files given, with the loader and the rules of serve.\n" +
			"Needs no running server and no secrets. Exit code 1 when there are errors; warnings alone are 0.\n\n" +
			"A single - reads one file from standard input and checks it among the others of the config folder, in the place " +
			"of\n" +
			"the file that --stdin-name names: what an editor has not saved yet, or what git has staged.\n\n" +
			"With --data, and where neither --config nor --data is given and the default store is there, the files are " +
			"compared\n" +
			"with that store as serve would on it: a project that lost its identity by a new slug is found. A running server " +
			"has\n" +
			"its store to itself and tells such a project in its log and /status.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch format {
			case "text", "json", "github", "sarif":
			default:
				return cli.Usage("--format must be text, json, github or sarif")
			}
			if asJSON {
				if cmd.Flags().Changed("format") && format != "json" {
					return cli.Usage("--json and --format %s: give one of them", format)
				}
				format = "json"
			}
			allow, err := allows.Parse()
			if err != nil {
				return err
			}
			if slices.Contains(args, "-") {
				if len(args) > 1 || cli.Given(cmd, "data") {
					return cli.Usage("- stands alone: it is one file, from standard input, and is compared with no store")
				}
				return validateInput(t, cli.ConfigDir(cmd), stdinName, allow, format)
			}
			if cli.Given(cmd, "stdin-name") {
				return cli.Usage("--stdin-name is for a file from standard input: give - as the path")
			}
			known, note, err := knownFiles(cmd, data)
			if err != nil {
				return err
			}
			if known != nil {
				defer known.Close()
			}
			if note != "" {
				defer fmt.Fprintln(t.Err, note) // the last line: it is about what was left out
			}
			return validate(t, cli.ConfigDir(cmd), known, allow, args, format)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout, as --format json does")
	cmd.Flags().StringVar(&format, "format", "text",
		"format of the problems: text, json, github (annotations of a pull request) or sarif (code scanning)")
	cmd.Flags().StringVar(&stdinName, "stdin-name", "stdin.hcl",
		"name of the file that standard input (-) stands for, below the config folder")
	cmd.Flags().StringVar(&data, "data", ".fingerpost",
		"folder of the store of a server that does not run, to compare with")
	allows.Add(cmd.Flags())
	return cmd
}

// knownFiles opens the store to compare the files with; nil: no comparison. A store that was not named on the command line
// belongs to the folder of the variables or the default one, and to no other. That there is none is no error, since the
// variables may be those of a service that has not started yet; one that cannot be opened is worth a note.
func knownFiles(cmd *cobra.Command, data string) (known *datadir.Stored, note string, err error) {
	named, changed := cli.Given(cmd, "data"), cmd.Flags().Changed
	if !named && (cli.Given(cmd, "config") || changed("config") && !changed("data")) {
		return nil, "", nil
	}
	known, err = datadir.OpenStored(data, slog.New(slog.DiscardHandler))
	if !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, datadir.ErrNoStore)) {
		return nil, "", nil
	}
	if err != nil && !named {
		return nil, fmt.Sprintf("%v: renamed slugs are not looked for; a running server tells them in its log and /status",
			err), nil
	}
	return known, "", err
}

// validation is what --json prints.
type validation struct {
	Valid       bool                `json:"valid"`
	Files       int                 `json:"files"` // those without errors
	Errors      int                 `json:"errors"`
	Warnings    int                 `json:"warnings"`
	Diagnostics hclfile.Diagnostics `json:"diagnostics"`
}

func validate(t cli.Terminal, dir string, known *datadir.Stored, allow catalog.Allows, paths []string,
	format string) error {
	v := validation{Diagnostics: hclfile.Diagnostics{}}
	roots, err := configRoots(dir, paths)
	if err != nil {
		return err
	}
	for _, r := range roots {
		var against configsrc.Known
		if known != nil && r.dir == dir {
			against = known
		}
		checked, err := checkFiles(t, r.dir, against, allow)
		if err != nil {
			return err
		}
		ds := checked.Problems
		if r.paths != nil {
			ds = checked.Within(r.paths)
		}
		v.Files += len(checked.Files)
		v.Diagnostics = append(v.Diagnostics, ds...)
	}
	v.Diagnostics = append(v.Diagnostics, nothingToCheck(dir, paths)...)
	return v.print(t, format)
}

// validateInput checks one file from standard input, in the place of the named one.
func validateInput(t cli.Terminal, dir, name string, allow catalog.Allows, format string) error {
	display := name
	if !below(dir, name) { // relative to the config folder
		display = filepath.Join(dir, name)
	}
	path, err := filepath.Rel(dir, display)
	if err != nil || !below(dir, display) || filepath.Ext(path) != ".hcl" {
		return cli.Usage("--stdin-name %q must be a .hcl file below %s", name, dir)
	}
	// one byte too many is a problem of the file
	content, err := io.ReadAll(io.LimitReader(t.In, folder.MaxFileBytes+1))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	checked, err := offline.CheckWith(dir, offline.Options{Allow: allow,
		Written: map[string][]byte{filepath.ToSlash(path): content}})
	if err != nil {
		return err
	}
	v := validation{Diagnostics: hclfile.Diagnostics{}, Files: len(checked.Files)}
	present, err := offline.CheckWith(dir, offline.Options{Allow: allow})
	if err != nil {
		return err
	}
	// Of other files only what the new content brings, such as a domain that it takes from them.
	known := map[string]bool{}
	for _, d := range present.Problems {
		known[d.File+"\x00"+d.Summary] = true
	}
	for _, d := range checked.Problems {
		if filepath.Clean(d.File) == filepath.Clean(display) || !known[d.File+"\x00"+d.Summary] {
			v.Diagnostics = append(v.Diagnostics, d)
		}
	}
	return v.print(t, format)
}

// print counts and prints the problems.
func (v *validation) print(t cli.Terminal, format string) (err error) {
	for _, d := range v.Diagnostics {
		if d.Severity == hclfile.Error {
			v.Errors++
		} else {
			v.Warnings++
		}
	}
	v.Valid = v.Errors == 0
	switch format {
	case "json":
		err = cli.PrintJSON(t.Out, v)
	case "sarif":
		err = cli.PrintJSON(t.Out, inRepository(v.Diagnostics).SARIF(builtAs().version))
	case "github":
		err = inRepository(v.Diagnostics).WriteGitHub(t.Out)
	default:
		err = v.Diagnostics.WriteText(t.Out, colour(t.Out))
	}
	if err != nil {
		return err
	}
	if format == "text" || format == "github" {
		fmt.Fprintf(t.Err, "%s good, %s, %s\n", catalog.Count(v.Files, "file"), catalog.Count(v.Errors, "error"),
			catalog.Count(v.Warnings, "warning"))
	}
	if !v.Valid {
		return cli.ErrNot
	}
	return nil
}

// inRepository returns diagnostics with their files relative to the top of the git repository around them, as those who
// show them in a pull request expect; files outside of one stay as they are.
func inRepository(ds hclfile.Diagnostics) hclfile.Diagnostics {
	ds = slices.Clone(ds)
	for i := range ds {
		abs, err := filepath.Abs(ds[i].File)
		if err != nil {
			continue
		}
		if top, found := folder.GitTop(filepath.Dir(abs)); found {
			if below, err := filepath.Rel(top, abs); err == nil {
				ds[i].File = below
			}
		}
	}
	return ds
}

// checkFiles is offline.CheckWith with a progress display.
func checkFiles(t cli.Terminal, dir string, known configsrc.Known,
	allow catalog.Allows) (*offline.Checked, error) {
	p := t.Progress("files read")
	defer p.End()
	return offline.CheckWith(dir, offline.Options{Known: known, Allow: allow, Progress: p.Set})
}

// A configRoot is a folder to load, and the part of it that was asked about; nil: all.
type configRoot struct {
	dir   string
	paths []string
}

// configRoots sorts the arguments. A folder is loaded as a config folder. A file is checked among the files of the
// config folder that contains it, else among the files next to it.
func configRoots(dir string, paths []string) ([]configRoot, error) {
	if len(paths) == 0 {
		return []configRoot{{dir: dir}}, nil
	}
	var roots []configRoot
	for _, p := range paths {
		info, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: there is no such file or folder", p)
		}
		if err != nil {
			return nil, err
		}
		root := configRoot{dir: p}
		if below(dir, p) {
			root = configRoot{dir, []string{p}}
		} else if !info.IsDir() {
			root = configRoot{filepath.Dir(p), []string{p}}
		}
		i := slices.IndexFunc(roots, func(r configRoot) bool { return r.dir == root.dir })
		switch {
		case i < 0:
			roots = append(roots, root)
		case root.paths == nil || roots[i].paths == nil:
			roots[i].paths = nil
		default:
			roots[i].paths = append(roots[i].paths, root.paths...)
		}
	}
	return roots, nil
}

// below reports whether p is inside dir and not dir itself.
func below(dir, p string) bool {
	absDir, err1 := filepath.Abs(dir)
	absPath, err2 := filepath.Abs(p)
	rel, err3 := filepath.Rel(absDir, absPath)
	return errors.Join(err1, err2, err3) == nil && rel != "." && filepath.IsLocal(rel)
}

// colour reports whether w is a terminal that shows colours.
func colour(w io.Writer) bool {
	_, no := os.LookupEnv("NO_COLOR")
	return !no && cli.IsTerminal(w)
}
