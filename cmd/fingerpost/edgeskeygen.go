package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

func newEdgesKeygen(t cli.Terminal) *cobra.Command {
	asJSON, out := false, ""
	cmd := &cobra.Command{
		Use:   "keygen NAME",
		Short: "Write a new edge's public key to the files and print its seed, once",
		Long: "The seed is what the edge proves itself with: it belongs into a file of mode 0600 on its machine, for serve " +
			"--edge-key; --out makes one.\n" +
			"To replace the key of an edge, remove its block first; the old key is then refused with the reload.",
		Args: cli.WantsNamed("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeEdge(t, cli.ConfigDir(cmd), args[0], out, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	cmd.Flags().StringVar(&out, "out", "", "write the seed to this new file, for its owner only, and do not print it")
	return cmd
}

func makeEdge(t cli.Terminal, dir, name, out string, asJSON bool) error {
	if msg := catalog.CheckEdgeName(name); msg != "" {
		return cli.Usage("%s", msg)
	}
	checked, err := checkFor(dir, "edge", name, edits.EdgesFile)
	if err != nil {
		return err
	}
	path := edits.EdgesFile
	for i := range checked.Files {
		f := &checked.Files[i]
		for _, e := range f.Declared.Edges {
			if path = f.Path; e.Name == name {
				return cli.No("there is an edge %q already, in %s: remove its block to give it another key, or choose another name",
					name, f.Display)
			}
		}
	}
	public, seed, err := cluster.NewEdgeKey()
	if err != nil {
		return err
	}
	if out != "" { // before the files name the key
		if err := writeSeed(out, seed); err != nil {
			return err
		}
	}
	if err := addBlock(dir, path, hcledit.EdgeBlock(&catalog.Edge{Name: name, PublicKey: public})); err != nil {
		return err
	}
	file := filepath.Join(dir, path)
	if out != "" {
		fmt.Fprintf(t.Err, "%s has the public key of edge %q now, and %s its seed, for serve --edge-key\n", file, name, out)
		if asJSON {
			return cli.PrintJSON(t.Out, map[string]string{"name": name, "publicKey": public, "seedFile": out, "file": file})
		}
		return nil
	}
	if asJSON {
		return cli.PrintJSON(t.Out, map[string]string{"name": name, "publicKey": public, "seed": seed, "file": file})
	}
	fmt.Fprintf(t.Err, "%s has the public key of edge %q now. This is the seed, for serve --edge-key; it cannot be "+
		"shown again:\n", file, name)
	_, err = fmt.Fprintln(t.Out, seed)
	return err
}

// writeSeed writes a seed to a file that does not exist yet, for its owner only.
func writeSeed(name, seed string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cli.No("%s is there already, and may be the seed of another edge: remove it, or choose another file", name)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, seed)
	return errors.Join(err, f.Sync(), f.Close())
}
