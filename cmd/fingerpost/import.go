package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// importFlags are the flags of import.
type importFlags struct {
	cli.RemoteFlags
	csv, slugFrom string
	force, asJSON bool
}

func newImport(t cli.Terminal) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import {--url URL --key KEY | --csv FILE}",
		Short: "Write what a server or a table has into files",
		Long: `Reads all projects of any service that speaks the platform API, and the mail API where there is one, and writes a file
<slug>.hcl for each into the config folder, and _templates.hcl for the default templates. Ids are kept: a uuid or id that
does not follow from the names is pinned by a line.

Everything is read and checked before anything is written, and all problems come at once: names that are no slugs, domains
that are none or belong to two projects, and files that are there already with other content (--force replaces them; equal
ones are left alone). Each file is written whole or not at all.

No API tells passwords. Where there must be one, the file says env("<SLUG>_SMTP_PASSWORD") or env("<SLUG>_JWT_SECRET"), and
stderr lists what has to be set, or replaced by what "fingerpost secrets seal" prints.

With --csv the projects come from a table whose first row has the headings: slug (required), name (empty: the slug),
domain, primary (true, false, yes, no, 1 or 0), description and status (empty: DRAFT), in any case. Every other heading is
the name of a label. With --slug-from name, a row without a slug has that of its name, as a new project over the API. Rows with the same slug are one project, and each may add a domain; an empty cell says nothing. Commas, semicolons
or tabs separate the columns, as in the first row. A problem has the line and the column.

The key needs the permission read (and mail's calls read, too). Exit codes: 0 done; 1 nothing was written, because of
problems that are listed; 2 wrong usage; 3 could not read the server or write the files.

--json prints one document:
  {"files": [{"file": "projects.d/acme.hcl", "result": "written"}], "secrets": ["acme.hcl: …"], "notKept": [],
   "problems": []}
result is written, replaced or unchanged. Where there are problems, nothing was written, and files is empty.`,
		Example: `  FINGERPOST_KEY=… fingerpost import --url https://platform.example --config projects.d
  FINGERPOST_KEY=… FINGERPOST_MAIL_KEY=… fingerpost import --url https://platform.example --mail-url https://mail.example
  fingerpost import --csv customers.csv           # slug,name,domain,primary,plan: plan becomes a label
  customers-of-crm | fingerpost import --csv - --slug-from name
  fingerpost validate && fingerpost fmt --check   # both hold afterwards`,
		Args: cobra.NoArgs,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if err := f.choose(cmd); err != nil {
				return err
			}
			return runImport(cmd.Context(), t, cli.ConfigDir(cmd), f)
		}),
	}
	f.Add(cmd, "read")
	cmd.Flags().StringVar(&f.csv, "csv", "",
		"table (CSV) of slugs, names, domains and labels to read instead of a server; - for stdin")
	cmd.Flags().StringVar(&f.slugFrom, "slug-from", "",
		"source of the slug of a row that has none, with --csv: name (default none)")
	cli.CompleteFlag(cmd, "slug-from", cli.Fixed("name"))
	_ = cmd.MarkFlagFilename("csv", "csv", "tsv", "txt") // fails for unknown flags only
	cmd.Flags().BoolVar(&f.force, "force", false, "replace files that exist with other content")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// choose checks whether a server or a table is read. A flag wins over the variable of the other one.
func (f *importFlags) choose(cmd *cobra.Command) error {
	if f.slugFrom != "" && f.slugFrom != "name" {
		return cli.Usage("--slug-from takes name")
	}
	if cli.Given(cmd, "csv") {
		for _, name := range []string{"url", "key", "ca-cert", "timeout", "mail-url", "mail-key", "no-mail", "parallel"} {
			if cli.Given(cmd, name) {
				return cli.Usage("--csv reads a table, and --%s is about a server: give one of them", name)
			}
		}
		return nil
	}
	if cli.Given(cmd, "url") {
		f.csv = ""
	}
	if f.slugFrom != "" && f.csv == "" {
		return cli.Usage("--slug-from is for a table, which --csv names")
	}
	if f.csv == "" && f.URL == "" {
		return cli.Usage("import needs --url (or FINGERPOST_URL), or --csv")
	}
	return nil
}

func runImport(ctx context.Context, t cli.Terminal, dir string, f importFlags) error {
	im, err := f.read(ctx, t, dir)
	if err != nil {
		return err
	}
	_, missing := os.Stat(dir)
	if len(im.Problems) > 0 && missing != nil { // else the folder may add some
		return refuseImport(t, f.asJSON, im.Problems)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := writeImport(ctx, t, dir, f, im)
	if err != nil {
		if missing != nil {
			_ = os.Remove(dir) // fails if it is not empty
		}
		return err
	}
	return printImport(t, out, f.asJSON)
}

// read makes the files of the server's or the table's projects.
func (f *importFlags) read(ctx context.Context, t cli.Terminal, dir string) (*transfer.Import, error) {
	if f.csv != "" {
		return readTable(t, dir, f)
	}
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	checked, err := checkTarget(t, dir)
	if err != nil {
		return nil, err
	}
	read := t.Progress("projects read")
	defer read.End()
	im, err := transfer.ReadServer(ctx, c, defaultsOf(checked), folder.MaxFileBytes, f.Parallel, read.Set)
	if err != nil {
		return nil, fmt.Errorf("%w (nothing was written)", err)
	}
	return im, nil
}

// checkTarget checks the folder that receives an import. One that does not exist is empty.
func checkTarget(t cli.Terminal, dir string) (*offline.Checked, error) {
	checked, err := checkFiles(t, dir, nil, catalog.Allows{})
	if errors.Is(err, fs.ErrNotExist) {
		return &offline.Checked{}, nil
	}
	return checked, err
}

// defaultsOf returns the folder's defaults block, or nil: projects need not repeat its values.
func defaultsOf(checked *offline.Checked) *catalog.Defaults {
	return transfer.NewTree(checked.Declarations()).Defaults
}

func writeImport(ctx context.Context, t cli.Terminal, dir string, f importFlags, im *transfer.Import) (*transfer.Imported,
	error) {
	ds, err := im.Place(dir, configFolder(dir), f.force)
	if err != nil {
		return nil, err
	}
	if err := ds.WriteText(t.Err, colour(t.Err)); err != nil {
		return nil, err
	}
	if len(im.Problems) > 0 {
		return nil, refuseImport(t, f.asJSON, im.Problems)
	}
	// Up to here nothing has been written.
	written := t.Progress("files written")
	defer written.End()
	return im.Write(ctx, configFolder(dir), written.Set)
}

// A configFolder is the config folder, to which package transfer writes.
type configFolder string

func (f configFolder) Check(files map[string][]byte) (hclfile.Diagnostics, error) {
	checked, err := offline.CheckWith(string(f), offline.Options{Written: files})
	if err != nil {
		return nil, err
	}
	return checked.Problems, nil
}

func (f configFolder) Create(name string, content []byte) error {
	return atomicfile.Create(string(f), name, content)
}

func (f configFolder) Edit(name string, edit func(src []byte) ([]byte, error)) error {
	return atomicfile.Edit(string(f), name, edit)
}

// refuseImport ends an import that has written nothing.
func refuseImport(t cli.Terminal, asJSON bool, problems []string) error {
	none := transfer.Imported{Files: []transfer.ImportedFile{}, Secrets: []string{}, NotKept: []string{},
		Problems: problems}
	return cli.EndWithProblems(t, asJSON, none, problems, "written")
}

func printImport(t cli.Terminal, out *transfer.Imported, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(t.Out, out)
	}
	changed := 0
	for _, f := range out.Files {
		if f.Result != transfer.Unchanged {
			changed++
			fmt.Fprintf(t.Out, "%s %s\n", f.Result, f.File)
		}
	}
	fmt.Fprintf(t.Err, "%s written, %d unchanged\n", catalog.Count(changed, "file"), len(out.Files)-changed)
	for _, text := range out.NotKept {
		fmt.Fprintf(t.Err, "not kept: %s\n", text)
	}
	for _, text := range out.Secrets {
		fmt.Fprintf(t.Err, "to be filled in: %s\n", text)
	}
	return nil
}
