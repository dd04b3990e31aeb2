package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

func newEdgesKeygen(t terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "keygen NAME",
		Short: "Write a new edge's public key to the files and print its seed, once",
		Long: "The seed is what the edge proves itself with: put it into a file of mode 0600 on its machine, for serve " +
			"--edge-key.\n" +
			"To replace the key of an edge, remove its block first; the old key is then refused with the reload.",
		Args: wantsNamed("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeEdge(t, configDir(cmd), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

func makeEdge(t terminal, dir, name string, asJSON bool) error {
	if msg := catalog.CheckEdgeName(name); msg != "" {
		return usage("%s", msg)
	}
	checked, err := checkSound(dir, "edges")
	if err != nil {
		return err
	}
	path := configsrc.EdgesFile
	for i := range checked.Files {
		f := &checked.Files[i]
		for _, e := range f.Declared.Edges {
			if path = f.Path; e.Name == name {
				return no("there is an edge %q already, in %s: remove its block to give it another key, or choose another name",
					name, f.Display)
			}
		}
	}
	public, seed, err := cluster.NewEdgeKey()
	if err != nil {
		return err
	}
	if err := addBlock(dir, path, hcledit.EdgeBlock(&catalog.Edge{Name: name, PublicKey: public})); err != nil {
		return err
	}
	file := filepath.Join(dir, path)
	if asJSON {
		return printJSON(t.out, map[string]string{"name": name, "publicKey": public, "seed": seed, "file": file})
	}
	fmt.Fprintf(t.err, "%s has the public key of edge %q now. This is the seed, for serve --edge-key; it cannot be "+
		"shown again:\n", file, name)
	_, err = fmt.Fprintln(t.out, seed)
	return err
}
