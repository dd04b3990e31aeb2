package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The folder that init writes: commented, valid, formatted, and without a key, because each installation makes its own,
// the first one for people.
//
//go:embed example
var example embed.FS

func newInit(t cli.Terminal) *cobra.Command {
	var ci []string
	key := true
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented example folder",
		Long: "Writes an example config folder (projects.d when DIR is left out) with a key for people, which is printed " +
			"once, on stderr,\nand .gitattributes and .gitignore. What exists is left alone.\n\n" +
			"With --ci it also writes what checks the files in git, at the top of the repository: a pre-commit hook, and " +
			"jobs for pull\n" +
			"requests on GitHub and GitLab. A folder that has config files already gets these alone.",
		Example: "  fingerpost init\n  fingerpost init --ci\n  fingerpost init --ci=github,hook config",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ci, args, err := ciArgs(ci, args)
			if err != nil {
				return err
			}
			dir := cli.ConfigDir(cmd)
			if len(args) == 1 {
				dir = args[0]
			}
			if len(ci) == 0 || !hasConfig(dir) {
				if err := initDir(t, dir, key); err != nil {
					return err
				}
			}
			return initCI(t, dir, ci)
		},
	}
	cmd.Flags().StringSliceVar(&ci, "ci", nil, "write what checks the files in git, too, all of it or some of: "+
		strings.Join(ciWords(), ", "))
	cmd.Flags().Lookup("ci").NoOptDefVal = allCI
	cmd.Flags().BoolVar(&key, "key", true, "make a key for people and print it")
	cli.CompleteFlag(cmd, "ci", cli.Fixed(ciWords()...))
	return cmd
}

// gitFiles are written next to the config folder, for git.
var gitFiles = []struct{ name, content string }{
	{".gitattributes", "# The same commit must have the same bytes on every node.\n*.hcl text eol=lf\n# Mail bodies " +
		"are sent as they are.\nmail/** -text\n"},
	{".gitignore", "# The store, derived from the files, and what must never be " +
		"committed.\n/.fingerpost/\nseal.key\n.fingerpost-*.tmp\n"},
}

// hasConfig reports whether a folder has config files.
func hasConfig(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.hcl"))
	return err == nil && len(files) > 0
}

func initDir(t cli.Terminal, dir string, key bool) error {
	if hasConfig(dir) {
		return cli.No("%s has config files already: nothing was written", dir)
	}
	err := fs.WalkDir(example, "example", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := example.ReadFile(name)
		if err == nil {
			b, err = withUUIDs(name, b)
		}
		if err != nil {
			return err
		}
		return writeNew(t, dir, strings.TrimPrefix(name, "example/"), b)
	})
	if err != nil {
		return err
	}
	for _, f := range gitFiles {
		if err := writeNew(t, filepath.Dir(filepath.Clean(dir)), f.name, []byte(f.content)); err != nil {
			return err
		}
	}
	if !key {
		return nil
	}
	if err := writeFirstKey(t, dir); err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "next: fingerpost serve --config %s; a service gets a key of its own: fingerpost keys create "+
		"my-service --allow resolve --config %[1]s\n", shellWord(dir))
	return nil
}

// withUUIDs gives each project of a config file a random uuid, so that a slug that is used again is not taken for it.
func withUUIDs(name string, src []byte) ([]byte, error) {
	if filepath.Ext(name) != ".hcl" {
		return src, nil
	}
	decoded, _ := hclfile.Decode(name, src, hclfile.Options{}) // init-ci.txtar validates what is written
	var err error
	for i := range decoded.Declared.Projects {
		at := hcledit.BlockPath{"project", decoded.Declared.Projects[i].Project.Slug}
		if src, err = hcledit.SetAttribute(src, at, "uuid", hcledit.Quote(catalog.NewUUID().String())); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// writeFirstKey makes a key with which a person signs in to the console. It is printed on stderr, because stdout lists
// files for those who go on with them.
func writeFirstKey(t cli.Terminal, dir string) error {
	k := catalog.Key{Name: "admin", Allow: catalog.MayAll}
	text, err := newKey(&k)
	if err != nil {
		return err
	}
	content := "# For people, in the console and on the command line. Each service gets a key of its own, which may less.\n" +
		hcledit.KeyBlock(&k)
	if err := writeNew(t, dir, edits.KeysFile, []byte(content)); err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "the key %q is for people, in the console and as FINGERPOST_KEY; it cannot be shown again:\n%s\n",
		k.Name, text)
	return nil
}

// writeNew writes a file that does not exist yet, with its folder, and prints its name.
func writeNew(t cli.Terminal, dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		fmt.Fprintf(t.Err, "%s exists and was left alone\n", path)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Create(dir, name, content); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.Out, path)
	return err
}
