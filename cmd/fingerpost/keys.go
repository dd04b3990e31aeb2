package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

func newKeys(t cli.Terminal) *cobra.Command {
	return cli.Group("keys", "Create, list, rotate and revoke API keys in the files",
		"Keys stand in the files as hashes. A running server takes changes up at once; so does every node that gets the "+
			"files.",
		newKeysCreate(t), newKeysList(t), newKeysRevoke(t), newKeysRotate(t))
}

func newKeysCreate(t cli.Terminal) *cobra.Command {
	var allow, projects []string
	var expires, holder, owner string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "create NAME --allow resolve,read,… | --for HOLDER",
		Short: "Write a new key's hash to the files and print the key, once",
		Args:  cli.WantsNamed("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			perm, unknown := catalog.ParsePermissions(allow)
			if holder != "" {
				i := slices.IndexFunc(catalog.Presets, func(p catalog.Preset) bool { return p.Name == holder })
				if i < 0 || len(allow) > 0 {
					return cli.Usage("--for takes one of %s, without --allow", strings.Join(presetNames(), ", "))
				}
				perm = catalog.Presets[i].Allow
			}
			if len(unknown) > 0 || perm == 0 {
				return cli.Usage("--allow takes one or more of %s; or give --for, with one of %s",
					strings.Join(catalog.Permissions, ", "), strings.Join(presetNames(), ", "))
			}
			if cli.NamesNothing(projects) {
				return cli.Usage("--projects must name projects; without it, the key is for every project")
			}
			k := catalog.Key{Name: args[0], Allow: perm, Owner: owner, Projects: projects}
			if owner != "" && projects == nil {
				k.Projects = []string{}
			}
			if expires != "" {
				d, err := cli.ParseLifetime(expires)
				if err != nil {
					return cli.Usage("--expires: %v", err)
				}
				k.ExpiresAt = time.Now().Add(d).Truncate(time.Second)
			}
			return createKey(t, cli.ConfigDir(cmd), k, asJSON)
		},
	}
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "permissions of the key: "+strings.Join(catalog.Permissions, ", "))
	cmd.Flags().StringVar(&holder, "for", "", "permissions that a usual holder needs, instead of --allow: "+
		strings.Join(presetNames(), ", "))
	cmd.Flags().StringSliceVar(&projects, "projects", nil,
		"slugs of the projects that the key is for (default every project)")
	cmd.Flags().StringVar(&owner, "owner", "",
		"owner of projects: the key is for the projects that have it, and those of --projects, alone (default none)")
	cmd.Flags().StringVar(&expires, "expires", "", "time after which the key ends, such as 90d or 12h (default never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	cli.CompleteFlag(cmd, "allow", cli.Fixed(catalog.Permissions...))
	cli.CompleteFlag(cmd, "for", cli.Fixed(presetNames()...))
	cli.CompleteFlag(cmd, "projects", (*offline.Checked).Slugs)
	return cmd
}

func presetNames() (names []string) {
	for _, p := range catalog.Presets {
		names = append(names, p.Name)
	}
	return names
}

// A placedKey is a key with the file that declares it.
type placedKey struct {
	catalog.Key
	file *offline.File
}

func keysOf(checked *offline.Checked) (keys []placedKey) {
	for i := range checked.Files {
		f := &checked.Files[i]
		for _, k := range f.Declared.Keys {
			keys = append(keys, placedKey{k, f})
		}
	}
	return keys
}

func keyNames(checked *offline.Checked) (names []string) {
	for _, k := range keysOf(checked) {
		names = append(names, k.Name)
	}
	return names
}

// findKey returns the key with a name, and the old keys of its rotations that are still good. Other files may have
// errors: a key that has leaked must not wait for them.
func findKey(dir, name string) (k placedKey, old []placedKey, err error) {
	checked, err := offline.Check(dir)
	if err != nil {
		return k, nil, err
	}
	keys := keysOf(checked)
	i := slices.IndexFunc(keys, func(k placedKey) bool { return k.Name == name })
	if i < 0 {
		return k, nil, cli.No("there is no key %q in %s%s", name, dir, unseen(checked, name))
	}
	for _, k := range keys {
		if k.ReplacedBy(name) && !k.Expired(time.Now()) {
			old = append(old, k)
		}
	}
	return keys[i], old, nil
}

// unseen says which files were not searched for a key, because they have errors.
func unseen(checked *offline.Checked, name string) string {
	var files []string
	for _, f := range checked.Broken {
		if f.Mentions("key", name) {
			return fmt.Sprintf("; it seems to be in %s, which has errors: mend it first (fingerpost validate)", f.Display)
		}
		files = append(files, f.Display)
	}
	if len(files) == 0 {
		return ""
	}
	return "; not searched, because they have errors: " + strings.Join(files, ", ")
}

func createKey(t cli.Terminal, dir string, k catalog.Key, asJSON bool) error {
	checked, err := checkFor(dir, "key", k.Name, edits.KeysFile)
	if err != nil {
		return err
	}
	keys := keysOf(checked)
	if at := slices.Index(keyNames(checked), k.Name); at >= 0 {
		return cli.No("there is a key %q already, in %s: revoke or rotate it, or choose another name", k.Name,
			keys[at].file.Display)
	}
	text, err := newKey(&k)
	if err != nil {
		return err
	}
	path := edits.KeysFile
	if len(keys) > 0 {
		path = keys[0].file.Path
	}
	if err := addBlock(dir, path, hcledit.KeyBlock(&k)); err != nil {
		return err
	}
	warnUnknown(t, checked, k.Projects)
	return printKey(t, k, text, filepath.Join(dir, path), asJSON)
}

// checkFor checks the folder that is to declare something new of a kind, in file if nothing else has one. Files with errors
// are in the way only if they may declare it already.
func checkFor(dir, kind, name, file string) (*offline.Checked, error) {
	checked, err := offline.Check(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range checked.Broken {
		if f.Mentions(kind, name) || f.Display == filepath.Join(dir, file) {
			return nil, cli.No("%s has errors, and %s %s %q may be in it: mend it first (fingerpost validate)", f.Display,
				map[bool]string{true: "an", false: "a"}[kind == "edge"], kind, name)
		}
	}
	return checked, nil
}

// warnUnknown warns of slugs that no project has. A key may be made before its project.
func warnUnknown(t cli.Terminal, checked *offline.Checked, slugs []string) {
	for _, slug := range slugs {
		broken := func(f offline.BrokenFile) bool { return f.Mentions("project", slug) }
		if _, project := checked.Project(slug); project == nil && !slices.ContainsFunc(checked.Broken, broken) {
			hint := cmp.Or(cli.Suggestion("`%s`", hclfile.Nearest(slug, checked.Slugs())),
				": the key is for whichever project takes it")
			fmt.Fprintf(t.Err, "warning: no project has the slug %q%s\n", slug, hint)
		}
	}
}

// newKey gives k an id and a hash, and checks it.
func newKey(k *catalog.Key) (text string, err error) {
	text = k.Renew()
	for _, p := range k.Validate() {
		if !p.Warning {
			return "", cli.Usage("%s: %s", p.Path, p.Message)
		}
	}
	return text, nil
}

// addBlock appends a block to a file, and creates the file if needed.
func addBlock(dir, path, block string) error {
	if _, err := os.Lstat(filepath.Join(dir, path)); errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Create(dir, path, []byte(block)); err != nil {
			return err
		}
		return giveToOwner(dir, path)
	}
	return atomicfile.Edit(dir, path, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, block) })
}

func printKey(t cli.Terminal, k catalog.Key, text, file string, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(t.Out, map[string]string{"id": k.ID, "key": text, "name": k.Name, "file": file})
	}
	fmt.Fprintf(t.Err, "%s has the hash of key %q now. This is the key; it cannot be shown again:\n", file, k.Name)
	_, err := fmt.Fprintln(t.Out, text)
	return err
}

func newKeysList(t cli.Terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listKeys(t, cli.ConfigDir(cmd), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// listedKey is what keys list --json prints.
type listedKey struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	Allow     []string `json:"allow"`
	Owner     string   `json:"owner,omitempty"`
	Projects  []string `json:"projects"` // null: every project
	ExpiresAt *string  `json:"expiresAt"`
	Expired   bool     `json:"expired"`
	File      string   `json:"file"`
	Line      int      `json:"line"`
}

func listKeys(t cli.Terminal, dir string, asJSON bool) error {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return err
	}
	list := []listedKey{}
	for _, k := range keysOf(checked) {
		l := listedKey{Name: k.Name, ID: k.ID, Allow: k.Allow.Words(), Owner: k.Owner, Projects: k.Projects,
			File: k.file.Display, Line: k.file.Line(catalog.Ref{Kind: catalog.KindKey, Name: k.Name, KeyID: k.ID})}
		if !k.ExpiresAt.IsZero() {
			at := catalog.FileMoment(k.ExpiresAt)
			l.ExpiresAt, l.Expired = &at, k.ExpiresAt.Before(time.Now())
		}
		list = append(list, l)
	}
	if asJSON {
		return cli.PrintJSON(t.Out, list)
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tALLOW\tPROJECTS\tEXPIRES\tWHERE")
	for _, l := range list {
		projects, expires := "all", "never"
		if l.Projects != nil {
			projects = cmp.Or(strings.Join(l.Projects, ","), "none")
		}
		switch {
		case l.Owner != "" && len(l.Projects) > 0:
			projects += ",of " + l.Owner
		case l.Owner != "":
			projects = "of " + l.Owner
		}
		if l.ExpiresAt != nil {
			if expires = *l.ExpiresAt; l.Expired {
				expires += " (expired)"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s:%d\n", l.Name, l.ID, strings.Join(l.Allow, ","), projects, expires, l.File,
			l.Line)
	}
	return w.Flush()
}

func newKeysRevoke(t cli.Terminal) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:               "revoke NAME",
		Short:             "Remove a key from the files",
		Args:              cli.WantsNamed("NAME"),
		ValidArgsFunction: cli.CompleteArgs(keyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return revokeKey(t, cli.ConfigDir(cmd), args[0], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove the old keys of the key's rotations, too")
	return cmd
}

func revokeKey(t cli.Terminal, dir, name string, all bool) error {
	k, good, err := findKey(dir, name)
	if err != nil {
		return err
	}
	keys := []placedKey{k}
	if all {
		keys, good = append(keys, good...), nil
	}
	for _, k := range keys {
		err := atomicfile.Edit(dir, k.file.Path, func(src []byte) ([]byte, error) { return hcledit.RemoveKey(src, k.Name) })
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Err, "key %q is no longer in %s\n", k.Name, k.file.Display)
	}
	printStillGood(t, good, "; --all would have ended it, too")
	return nil
}

func printStillGood(t cli.Terminal, keys []placedKey, more string) {
	for _, k := range keys {
		fmt.Fprintf(t.Err, "an old key of it, %q, is good until %s%s\n", k.Name, catalog.SayMoment(k.ExpiresAt),
			more)
	}
}

func newKeysRotate(t cli.Terminal) *cobra.Command {
	var overlap string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "rotate NAME --overlap 24h",
		Short: "Replace a key by a new one, both good for a while",
		Long: "The new key takes the name and the rights; the old one is kept under NAME-<id> and expires " +
			"after the overlap.",
		Args:              cli.WantsNamed("NAME"),
		ValidArgsFunction: cli.CompleteArgs(keyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := cli.ParseLifetime(overlap)
			if err != nil {
				return cli.Usage("--overlap: %v", err)
			}
			return rotateKey(t, cli.ConfigDir(cmd), args[0], d, asJSON)
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "time that the old key stays good")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

func rotateKey(t cli.Terminal, dir, name string, overlap time.Duration, asJSON bool) error {
	old, good, err := findKey(dir, name)
	if err != nil {
		return err
	}
	r, err := old.Rotate(time.Now(), overlap)
	if err != nil {
		return cli.No("%v", err)
	}
	err = atomicfile.Edit(dir, old.file.Path, func(src []byte) ([]byte, error) { return hcledit.RotateKey(src, name, &r) })
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "the old key is %q now and good until %s\n", r.Old.Name,
		catalog.SayMoment(r.Old.ExpiresAt))
	printStillGood(t, good, "")
	return printKey(t, r.New, r.Text, old.file.Display, asJSON)
}
