package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// sealingFile is the file of a new sealing block.
const sealingFile = "sealing.hcl"

func newSecrets(t terminal) *cobra.Command {
	var keyFile string
	cmd := group("secrets", "Seal secrets, so that they can stand in the files", "",
		&cobra.Command{
			Use:   "keygen",
			Short: "Make an identity that opens sealed values, and add its recipient to the files",
			Args:  cobra.NoArgs,
			RunE:  command(func(cmd *cobra.Command, _ []string) error { return sealKeygen(t, configDir(cmd), keyFile) }),
		},
		&cobra.Command{
			Use:   "seal PROJECT FIELD",
			Short: "Seal a value from stdin, or asked for, and print the expression for the file",
			Long: "FIELD is jwt_secret or password. The sealed value works in that field of that project only.\n" +
				"It is never taken from an argument: those show in process lists and shell histories.",
			Args: cobra.ExactArgs(2),
			RunE: command(func(cmd *cobra.Command, args []string) error { return sealValue(t, configDir(cmd), args[0], args[1]) }),
		},
		&cobra.Command{
			Use:   "reseal",
			Short: "Encrypt all sealed values anew, for the recipients that the files name now",
			Args:  cobra.NoArgs,
			RunE:  command(func(cmd *cobra.Command, _ []string) error { return reseal(t, configDir(cmd), keyFile) }),
		})
	cmd.PersistentFlags().StringVar(&keyFile, "seal-key", defaultSealKey(), "the file with the age identity")
	return cmd
}

// defaultSealKey is seal.key in the user's config folder.
func defaultSealKey() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "seal.key"
	}
	return filepath.Join(dir, "fingerpost", "seal.key")
}

func sealKeygen(t terminal, dir, keyFile string) error {
	checked, err := configsrc.Check(dir)
	if err != nil {
		return err
	}
	recipient, err := seal.Keygen(keyFile)
	if errors.Is(err, fs.ErrExist) {
		return no("%s exists and is not overwritten: what it sealed could not be opened any more; name another file with --seal-key", keyFile)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(t.err, "%s holds the identity: keep a copy in a safe place, and never in git\n", keyFile)
	where, err := addRecipient(dir, checked, recipient)
	if err != nil {
		return fmt.Errorf("add the recipient %s to sealing in the files: %w", recipient, err)
	}
	fmt.Fprintf(t.err, "%s names its recipient:\n", where)
	_, err = fmt.Fprintln(t.out, recipient)
	return err
}

// addRecipient adds a recipient to the sealing block, or creates the block.
func addRecipient(dir string, checked *configsrc.Checked, recipient string) (where string, err error) {
	for _, f := range checked.Files {
		if f.Declared.Sealing == nil {
			continue
		}
		list := quoteList(append(f.Declared.Sealing.Recipients, recipient))
		return f.Display, atomicfile.Edit(dir, f.Path, func(src []byte) ([]byte, error) {
			return hcledit.SetAttribute(src, hcledit.BlockPath{"sealing"}, "recipients", list)
		})
	}
	block := "# Who can open sealed values; a service opens them with --seal-key.\nsealing {\n  recipients = " + quoteList([]string{recipient}) + "\n}\n"
	return filepath.Join(dir, sealingFile), addBlock(dir, sealingFile, block)
}

// secretFields maps the names that people use for a secret to its block and attribute.
var secretFields = map[string]struct{ block, attr string }{
	"jwt_secret":               {"auth_settings", "jwt_secret"},
	"auth_settings.jwt_secret": {"auth_settings", "jwt_secret"},
	"password":                 {"smtp_config", "password"},
	"smtp_config.password":     {"smtp_config", "password"},
}

func sealValue(t terminal, dir, slug, field string) error {
	at, ok := secretFields[field]
	if !ok {
		return usage("FIELD must be jwt_secret or password")
	}
	checked, err := configsrc.Check(dir)
	if err != nil {
		return err
	}
	recipients, err := recipientsOf(checked)
	if err != nil {
		return err
	}
	_, p := checked.Project(slug)
	if p == nil {
		return no("there is no project %q in the good files of %s", slug, dir)
	}
	value, err := readSecret(t, fmt.Sprintf("%s of %s: ", at.attr, slug))
	if err != nil {
		return err
	}
	if value == "" {
		return no("nothing was given on stdin to seal")
	}
	sealed, err := seal.Seal(recipients, seal.Context(p.Project.UUID, at.attr), value)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.err, "put this into the %s block of project %q:\n", at.block, slug)
	_, err = fmt.Fprintf(t.out, "%s = sealed(%s)\n", at.attr, hcledit.Quote(sealed))
	return err
}

func recipientsOf(checked *configsrc.Checked) ([]string, error) {
	for _, f := range checked.Files {
		if s := f.Declared.Sealing; s != nil && len(s.Recipients) > 0 {
			return s.Recipients, nil
		}
	}
	return nil, no(`no good file has a sealing block with recipients: run "fingerpost secrets keygen" first`)
}

// readSecret reads stdin to its end, without the final newline; from a terminal, one line that is not echoed.
func readSecret(t terminal, prompt string) (string, error) {
	if f, ok := t.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(t.err, prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(t.err)
		return string(b), err
	}
	b, err := io.ReadAll(io.LimitReader(t.in, 64<<10))
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), err
}

// reseal opens every sealed value first, so that it writes nothing if one cannot be opened.
func reseal(t terminal, dir, keyFile string) error {
	checked, err := checkSound(dir, "sealed values")
	if err != nil {
		return err
	}
	recipients, err := recipientsOf(checked)
	if err != nil {
		return err
	}
	ids, err := seal.Load(keyFile)
	if err != nil {
		return err
	}
	edits := map[string][]func(src []byte) ([]byte, error){} // by path
	n := 0
	for f, p := range projectsOf(checked) {
		for _, s := range sealedOf(p) {
			context := seal.Context(p.Project.UUID, s.attr)
			plain, err := ids.Open(context, s.text)
			if err != nil {
				return fmt.Errorf("open %s of project %q in %s: %w", s.attr, p.Project.Slug, f.Display, err)
			}
			sealed, err := seal.Seal(recipients, context, plain)
			if err != nil {
				return err
			}
			at := hcledit.BlockPath{"project", p.Project.Slug, s.block}
			edits[f.Path] = append(edits[f.Path], func(src []byte) ([]byte, error) {
				return hcledit.SetAttribute(src, at, s.attr, "sealed("+hcledit.Quote(sealed)+")")
			})
			n++
		}
	}
	for path, list := range edits {
		err := atomicfile.Edit(dir, path, func(src []byte) (_ []byte, err error) {
			for _, edit := range list {
				if src, err = edit(src); err != nil {
					return nil, err
				}
			}
			return src, nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "%s sealed anew for %s\n", count(n, "value"), count(len(recipients), "recipient"))
	return nil
}

type sealedValue struct{ block, attr, text string }

func sealedOf(p *catalog.ProjectConfig) (out []sealedValue) {
	if s := p.Auth.Token.JWTSecret; s.Source == catalog.SecretSealed {
		out = append(out, sealedValue{"auth_settings", "jwt_secret", s.Ref})
	}
	if p.SMTP != nil && p.SMTP.Password.Source == catalog.SecretSealed {
		out = append(out, sealedValue{"smtp_config", "password", p.SMTP.Password.Ref})
	}
	return out
}
