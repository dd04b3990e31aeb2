package main

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

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// importFlags are the flags of import.
type importFlags struct {
	remoteFlags
	force, asJSON bool
}

func newImport(t terminal) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import --url URL --key KEY",
		Short: "Write what a server has into files",
		Long: `Reads all projects of any service that speaks the platform API, and the mail API where there is one, and writes a file
<slug>.hcl for each into the config folder, and _templates.hcl for the default templates. Ids are kept: a uuid or id that
does not follow from the names is pinned by a line.

Everything is read and checked before anything is written, and all problems come at once: names that are no slugs, domains
that are none or belong to two projects, and files that are there already with other content (--force replaces them; equal
ones are left alone). Each file is written whole or not at all.

No API tells passwords. Where there must be one, the file says env("<SLUG>_SMTP_PASSWORD") or env("<SLUG>_JWT_SECRET"), and
stderr lists what has to be set, or replaced by what "fingerpost secrets seal" prints.

The key needs the permission read (and mail's calls read, too). Exit codes: 0 done; 1 nothing was written, because of
problems that are listed; 2 wrong usage; 3 could not read the server or write the files.

--json prints one document:
  {"files": [{"file": "projects.d/acme.hcl", "result": "written"}], "secrets": ["acme.hcl: …"], "notKept": [],
   "problems": []}
result is written, replaced or unchanged. Where there are problems, nothing was written, and files is empty.`,
		Example: `  FINGERPOST_KEY=… fingerpost import --url https://platform.example --config projects.d
  FINGERPOST_KEY=… FINGERPOST_MAIL_KEY=… fingerpost import --url https://platform.example --mail-url https://mail.example
  fingerpost validate && fingerpost fmt --check   # both hold afterwards`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if f.url == "" {
				return usage("import needs --url (or FINGERPOST_URL)")
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runImport(ctx, t, configDir(cmd), f)
		}),
	}
	f.add(cmd, "read")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace files that are there with other content")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// imported is what import --json prints.
type imported struct {
	Files   []importedFile `json:"files"`
	Secrets []string       `json:"secrets"` // to be given, by file
	NotKept []string       `json:"notKept"` // what files cannot say, or the server does not
	// Problems are why nothing was written.
	Problems []string `json:"problems"`
}

type importedFile struct {
	File   string `json:"file"`
	Result string `json:"result"` // written, replaced, unchanged
}

func runImport(ctx context.Context, t terminal, dir string, f importFlags) error {
	r, err := f.connect(t)
	if err != nil {
		return err
	}
	defaults, err := defaultsIn(t, dir)
	if err != nil {
		return err
	}
	im := importer{defaults: defaults, files: map[string][]byte{}, slugs: map[string]bool{}, owner: map[string]string{}}
	if err := im.read(ctx, r); err != nil {
		return fmt.Errorf("%w (nothing was written)", err)
	}
	if len(im.problems) > 0 {
		return refuseImport(t, f.asJSON, im.problems)
	}
	made, err := makeFolder(dir)
	if err != nil {
		return err
	}
	out, err := im.write(ctx, t, dir, f)
	if err != nil {
		if made {
			_ = os.Remove(dir) // stays where something is in it
		}
		return err
	}
	return out.print(t, f.asJSON)
}

// refuseImport ends an import before it wrote anything.
func refuseImport(t terminal, asJSON bool, problems []string) error {
	if asJSON {
		none := imported{Files: []importedFile{}, Secrets: []string{}, NotKept: []string{}, Problems: problems}
		if err := printJSON(t.out, none); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintln(t.err, p)
	}
	return no("%s: nothing was written", count(len(problems), "problem"))
}

// defaultsIn returns the defaults block of a folder that may not be there yet: what it says need not be said by projects.
func defaultsIn(t terminal, dir string) (*catalog.Defaults, error) {
	checked, err := t.check(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newDesired(checked).defaults, nil
}

// makeFolder reports whether it had to.
func makeFolder(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	return true, os.MkdirAll(dir, 0o755)
}

// write brings the files into the folder, after a look at all of them.
func (im *importer) write(ctx context.Context, t terminal, dir string, f importFlags) (*imported, error) {
	out := &imported{Files: []importedFile{}, Secrets: nonNil(im.secrets), NotKept: nonNil(im.notKept()), Problems: []string{}}
	var conflicts []string
	todo, replaced := map[string][]byte{}, map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(im.files)) {
		path, result := filepath.Join(dir, name), "written"
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case bytes.Equal(old, im.files[name]):
			result = "unchanged"
		case f.force:
			result, replaced[name] = "replaced", old
		default:
			conflicts = append(conflicts, path+" is there already, with other content (--force replaces it)")
		}
		if result != "unchanged" {
			todo[name] = im.files[name]
		}
		out.Files = append(out.Files, importedFile{path, result})
	}
	checked, err := configsrc.CheckWith(dir, todo)
	if err != nil {
		return nil, err
	}
	if checked.Problems.HasErrors() {
		if err := checked.Problems.WriteText(t.err, colour(t.err)); err != nil {
			return nil, err
		}
		for _, d := range checked.Problems {
			if d.Severity == hclfile.Error {
				conflicts = append(conflicts, "with the imported files there would be an error: "+d.File+": "+d.Summary)
			}
		}
	}
	if len(conflicts) > 0 {
		return nil, refuseImport(t, f.asJSON, conflicts)
	}
	// Nothing has been touched up to here.
	return out, writeAll(ctx, t, dir, todo, replaced)
}

// importWriters is how many files are written at once: the disk's syncs are what takes time.
const importWriters = 8

// writeAll writes the files; those that are replaced must still be what they were.
func writeAll(ctx context.Context, t terminal, dir string, files, replaced map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	next := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range importWriters {
		wg.Go(func() {
			for name := range next {
				if err := writeFile(dir, name, files[name], replaced[name]); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	shown := t.progress("files written")
	defer shown.end()
	written := 0
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		next <- name
		written++
		shown.set(written, len(names))
	}
	close(next)
	wg.Wait()
	if failed == nil && written < len(names) {
		failed = fmt.Errorf("interrupted after %d of %s; each is whole, and the same command writes the others", written, count(len(names), "file"))
	}
	return failed
}

func writeFile(dir, name string, content, old []byte) error {
	if old == nil {
		return configsrc.CreateFile(dir, name, content)
	}
	return configsrc.EditFile(dir, name, func(src []byte) ([]byte, error) {
		if !bytes.Equal(src, old) {
			return nil, fmt.Errorf("replace %s: somebody saved it meanwhile, and it was left as it is", name)
		}
		return content, nil
	})
}

func (out *imported) print(t terminal, asJSON bool) error {
	if asJSON {
		return printJSON(t.out, out)
	}
	changed := 0
	for _, f := range out.Files {
		if f.Result != "unchanged" {
			changed++
			fmt.Fprintf(t.out, "%s %s\n", f.Result, f.File)
		}
	}
	fmt.Fprintf(t.err, "%s written, %d unchanged\n", count(changed, "file"), len(out.Files)-changed)
	for _, text := range out.NotKept {
		fmt.Fprintf(t.err, "not kept: %s\n", text)
	}
	for _, text := range out.Secrets {
		fmt.Fprintf(t.err, "to be filled in: %s\n", text)
	}
	return nil
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// templatesFile holds the default templates. No slug has an underscore.
const templatesFile = "_templates.hcl"

// An importer turns what a server has into files.
type importer struct {
	defaults *catalog.Defaults // of the folder
	files    map[string][]byte
	slugs    map[string]bool
	owner    map[string]string // domain → slug
	problems []string
	secrets  []string
	cover    coverage
	foreign  []string // ids that files cannot pin
}

func (im *importer) problem(format string, args ...any) {
	im.problems = append(im.problems, fmt.Sprintf(format, args...))
}

// read fetches everything and makes the files' contents.
func (im *importer) read(ctx context.Context, r *remote) error {
	projects, err := r.projects(ctx)
	if err != nil {
		return err
	}
	pairs := pairUp(projects, nil)
	get := func(ctx context.Context, i int) (*found, error) { return r.project(ctx, pairs[i].have) }
	fetched := r.t.progress("projects read")
	defer fetched.end()
	err = inOrder(ctx, r.parallel, len(pairs), get, func(i int, f *found) error {
		fetched.set(i+1, len(pairs))
		im.cover.add(f)
		im.project(f)
		return nil
	})
	if err == nil && len(im.cover.shared) > 0 {
		im.shared(im.cover.shared)
	}
	return err
}

// project makes a project's file, or notes why that cannot be.
func (im *importer) project(f *found) {
	who := fmt.Sprintf("project %d (%s)", f.Project.ID, hcledit.Quote(f.Project.Slug))
	before := len(im.problems)
	for _, text := range f.odd {
		im.problem("%s: %s", who, text)
	}
	p := &f.ProjectConfig
	im.report(who, p.Project.Validate())
	if im.slugs[p.Project.Slug] {
		im.problem("%s: another project of the server has this slug, too", who)
	}
	im.slugs[p.Project.Slug] = true
	im.identify(p)
	im.domains(who, f)
	im.report(who+": auth settings", p.Auth.Validate())
	im.report(who+": service settings", p.Service.Validate())
	im.fillSecrets(f)
	if p.SMTP != nil {
		im.report(who+": SMTP config", p.SMTP.Validate())
	}
	im.templates(who, f)
	if len(im.problems) > before {
		return
	}
	im.unsaid(f)
	normalizeTexts(p)
	content, err := hcledit.WriteProject(p, im.defaults)
	switch {
	case err != nil:
		im.problem("%s: %v", who, err)
	case len(content) > configsrc.MaxFileBytes:
		im.problem("%s: its file would have %d bytes, %d are allowed", who, len(content), configsrc.MaxFileBytes)
	default:
		im.files[p.Project.Slug+".hcl"] = content
	}
}

func (im *importer) report(who string, ps catalog.Problems) {
	for _, p := range ps {
		if !p.Warning {
			im.problem("%s: %s %s", who, p.Path, p.Message)
		}
	}
}

// unsaid lets a project follow the folder's defaults block in what the server did not tell.
func (im *importer) unsaid(f *found) {
	if im.defaults == nil {
		return
	}
	follow := func(fields, defaults []catalog.Field, told []string) {
		for i := range fields {
			if slices.Contains(told, fields[i].Name) {
				continue
			}
			switch v := fields[i].Value.(type) {
			case *bool:
				*v = *defaults[i].Value.(*bool)
			case *int:
				*v = *defaults[i].Value.(*int)
			case *string:
				*v = *defaults[i].Value.(*string)
			case **string:
				*v = *defaults[i].Value.(**string)
			case *catalog.Secret:
				if v.Source == catalog.SecretNone {
					*v = *defaults[i].Value.(*catalog.Secret)
				}
			}
		}
	}
	v := seenBy(f, false)
	service, auth := catalog.NewServiceSettings().Over(im.defaults.Service), catalog.NewAuthSettings().Over(im.defaults.Auth)
	follow(f.Service.Fields(), service.Fields(), v.service)
	follow(f.Auth.Fields(), auth.Fields(), v.auth)
}
