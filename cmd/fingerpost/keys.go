package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

const (
	keysFile = "keys.hcl"            // the file of the first key
	keyTime  = "2006-01-02T15:04:05" // how files and answers write times, in UTC
)

func newKeys(t terminal) *cobra.Command {
	return group("keys", "Create, list, rotate and revoke API keys in the files",
		"Keys stand in the files as hashes. A running server takes changes up at once; so does every node that gets the files.",
		newKeysCreate(t), newKeysList(t), newKeysRevoke(t), newKeysRotate(t))
}

func newKeysCreate(t terminal) *cobra.Command {
	var allow, projects []string
	var expires string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "create NAME --allow resolve,read,…",
		Short: "Write a new key's hash to the files and print the key, once",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			perm, unknown := catalog.ParsePermissions(allow)
			if len(unknown) > 0 || perm == 0 {
				return usage("--allow takes one or more of %s", strings.Join(catalog.Permissions, ", "))
			}
			if namesNothing(projects) {
				return usage("--projects must name projects; without it, the key is for every project")
			}
			k := catalog.Key{Name: args[0], Allow: perm, Projects: projects}
			if expires != "" {
				d, err := parseLifetime(expires)
				if err != nil {
					return usage("--expires: %v", err)
				}
				k.ExpiresAt = time.Now().Add(d)
			}
			return createKey(t, configDir(cmd), k, asJSON)
		}),
	}
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "what it may do: "+strings.Join(catalog.Permissions, ", "))
	cmd.Flags().StringSliceVar(&projects, "projects", nil, "slugs of the projects it is for; every project when left out")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends, from now: 90d, 12h")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// namesNothing reports whether the list of a flag is empty or contains an empty name, as an unset variable makes it. A
// flag that was left out is nil.
func namesNothing(list []string) bool {
	return list != nil && len(list) == 0 || slices.Contains(list, "")
}

// parseLifetime parses 90d, 2w or what time.ParseDuration accepts.
func parseLifetime(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(s); n > 1 && units[s[n-1]] > 0 {
		days, err := strconv.ParseUint(s[:n-1], 10, 16)
		if err != nil || days == 0 || days > 36500 {
			return 0, fmt.Errorf("%q is no number of days or weeks", s)
		}
		return time.Duration(days) * units[s[n-1]], nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q must be a length of time such as 90d, 2w, 12h or 30m", s)
	}
	return d, nil
}

// A placedKey is a key with the file that declares it.
type placedKey struct {
	catalog.Key
	file *configsrc.CheckedFile
}

func keysOf(checked *configsrc.Checked) (keys []placedKey) {
	for i := range checked.Files {
		f := &checked.Files[i]
		for _, k := range f.Declared.Keys {
			keys = append(keys, placedKey{k, f})
		}
	}
	return keys
}

// findKey returns the key with a name. It refuses files with errors, because the key may be in one of them.
func findKey(dir, name string) (placedKey, error) {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return placedKey{}, err
	}
	for _, k := range keysOf(checked) {
		if k.Name == name {
			return k, nil
		}
	}
	return placedKey{}, no("there is no key %q in %s", name, dir)
}

func createKey(t terminal, dir string, k catalog.Key, asJSON bool) error {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return err
	}
	keys := keysOf(checked)
	if at := slices.IndexFunc(keys, func(old placedKey) bool { return old.Name == k.Name }); at >= 0 {
		return no("there is a key %q already, in %s: revoke or rotate it, or choose another name", k.Name, keys[at].file.Display)
	}
	text, err := newKey(&k)
	if err != nil {
		return err
	}
	path := keysFile
	if len(keys) > 0 {
		path = keys[0].file.Path
	}
	if err := addBlock(dir, path, keyBlock(k, text)); err != nil {
		return err
	}
	warnUnknown(t, checked, k.Projects)
	return printKey(t, k, text, filepath.Join(dir, path), asJSON)
}

// warnUnknown warns of slugs that no project has. A key may be made before its project.
func warnUnknown(t terminal, checked *configsrc.Checked, slugs []string) {
	for _, slug := range slugs {
		if _, project := checked.Project(slug); project != nil {
			continue
		}
		hint := "the key is for whichever project takes it"
		if near := hclfile.Nearest(slug, projectSlugs(checked)); near != "" {
			hint = "did you mean `" + near + "`?"
		}
		fmt.Fprintf(t.err, "warning: no project has the slug %q: %s\n", slug, hint)
	}
}

// newKey gives k an id and checks it.
func newKey(k *catalog.Key) (text string, err error) {
	text, k.ID = catalog.NewKeyText()
	for _, p := range k.Validate() {
		if !p.Warning {
			return "", usage("%s: %s", p.Path, p.Message)
		}
	}
	return text, nil
}

func keyBlock(k catalog.Key, text string) string {
	var b strings.Builder
	attr := func(name, value string) { fmt.Fprintf(&b, "  %s = %s\n", name, value) }
	fmt.Fprintf(&b, "key %s {\n", hcledit.Quote(k.Name))
	attr("id  ", hcledit.Quote(k.ID))
	attr("hash", hcledit.Quote(catalog.HashKeyText(text)))
	attr("allow", quoteList(k.Allow.Words()))
	if k.Projects != nil {
		attr("projects", quoteList(k.Projects))
	}
	if !k.ExpiresAt.IsZero() {
		attr("expires_at", hcledit.Quote(k.ExpiresAt.UTC().Format(keyTime)))
	}
	b.WriteString("}\n")
	out, diags := hclfile.Format([]byte(b.String()))
	if diags.HasErrors() {
		panic("fingerpost: a key block does not parse: impossible, all of it is quoted")
	}
	return string(out)
}

func quoteList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = hcledit.Quote(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// addBlock appends a block to a file, and creates the file if needed.
func addBlock(dir, path, block string) error {
	if _, err := os.Lstat(filepath.Join(dir, path)); errors.Is(err, fs.ErrNotExist) {
		return atomicfile.Create(dir, path, []byte(block))
	}
	return atomicfile.Edit(dir, path, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, block) })
}

func printKey(t terminal, k catalog.Key, text, file string, asJSON bool) error {
	if asJSON {
		return printJSON(t.out, map[string]string{"id": k.ID, "key": text, "name": k.Name, "file": file})
	}
	fmt.Fprintf(t.err, "%s has the hash of key %q now. This is the key; it cannot be shown again:\n", file, k.Name)
	_, err := fmt.Fprintln(t.out, text)
	return err
}

func newKeysList(t terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			return listKeys(t, configDir(cmd), asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// listedKey is what keys list --json prints.
type listedKey struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	Allow     []string `json:"allow"`
	Projects  []string `json:"projects"` // null: every project
	ExpiresAt *string  `json:"expiresAt"`
	Expired   bool     `json:"expired"`
	File      string   `json:"file"`
	Line      int      `json:"line"`
}

func listKeys(t terminal, dir string, asJSON bool) error {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return err
	}
	list := []listedKey{}
	for _, k := range keysOf(checked) {
		l := listedKey{Name: k.Name, ID: k.ID, Allow: k.Allow.Words(), Projects: k.Projects, File: k.file.Display,
			Line: k.file.Line(catalog.Ref{Kind: catalog.KindKey, Name: k.Name, KeyID: k.ID})}
		if !k.ExpiresAt.IsZero() {
			at := k.ExpiresAt.UTC().Format(keyTime)
			l.ExpiresAt, l.Expired = &at, k.ExpiresAt.Before(time.Now())
		}
		list = append(list, l)
	}
	if asJSON {
		return printJSON(t.out, list)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tALLOW\tPROJECTS\tEXPIRES\tWHERE")
	for _, l := range list {
		projects, expires := "all", "never"
		if l.Projects != nil {
			projects = cmp.Or(strings.Join(l.Projects, ","), "none")
		}
		if l.ExpiresAt != nil {
			if expires = *l.ExpiresAt; l.Expired {
				expires += " (expired)"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s:%d\n", l.Name, l.ID, strings.Join(l.Allow, ","), projects, expires, l.File, l.Line)
	}
	return w.Flush()
}

func newKeysRevoke(t terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Remove a key from the files",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			dir := configDir(cmd)
			k, err := findKey(dir, args[0])
			if err != nil {
				return err
			}
			err = atomicfile.Edit(dir, k.file.Path, func(src []byte) ([]byte, error) {
				return hcledit.RemoveBlock(src, "key", k.Name)
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(t.err, "key %q is no longer in %s\n", k.Name, k.file.Display)
			return nil
		}),
	}
}

func newKeysRotate(t terminal) *cobra.Command {
	var overlap string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "rotate NAME --overlap 24h",
		Short: "Replace a key by a new one, both good for a while",
		Long:  "The new key takes the name and the rights; the old one is kept under NAME-<id> and expires after the overlap.",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			d, err := parseLifetime(overlap)
			if err != nil {
				return usage("--overlap: %v", err)
			}
			return rotateKey(t, configDir(cmd), args[0], d, asJSON)
		}),
	}
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long the old key stays good")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// rotated matches the suffix that an earlier rotation gave to a name.
var rotated = regexp.MustCompile(`-[a-z0-9]{6,16}$`)

func rotateKey(t terminal, dir, name string, overlap time.Duration, asJSON bool) error {
	old, err := findKey(dir, name)
	if err != nil {
		return err
	}
	k := old.Key
	text, err := newKey(&k)
	if err != nil {
		return err
	}
	now := time.Now()
	expires := now.Add(overlap)
	if !old.ExpiresAt.IsZero() && old.ExpiresAt.Before(expires) {
		expires = old.ExpiresAt
	}
	if expires.Before(now) {
		return no("key %q has expired, and the new one would have with it: revoke it and create another", name)
	}
	oldName := rotated.ReplaceAllString(name, "") + "-" + old.ID
	err = atomicfile.Edit(dir, old.file.Path, func(src []byte) ([]byte, error) {
		src, err := hcledit.SetAttribute(src, hcledit.BlockPath{"key", name}, "expires_at", hcledit.Quote(expires.UTC().Format(keyTime)))
		if err != nil {
			return nil, err
		}
		if src, err = hcledit.RenameLabel(src, hcledit.BlockPath{"key", name}, oldName); err != nil {
			return nil, err
		}
		return hcledit.AppendBlock(src, keyBlock(k, text))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.err, "the old key is %q now and good until %s UTC\n", oldName, expires.UTC().Format("2006-01-02 15:04:05"))
	return printKey(t, k, text, old.file.Display, asJSON)
}
