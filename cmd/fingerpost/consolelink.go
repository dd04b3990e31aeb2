package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/ops"
	"fingerpost/cmd/fingerpost/cli"
)

func newConsoleLink(t cli.Terminal) *cobra.Command {
	var opsURL, data string
	cmd := &cobra.Command{
		Use:   "console-link",
		Short: "Print a link that signs in to the console of a running server, once",
		Long: "Asks the ops listener of a running server for a link that signs one person in to its console with every " +
			"permission,\nonce, within 10 minutes, from any machine that reaches it. Who may read the server's data " +
			"folder may ask: root, and\nthe server's user. In a container: docker exec NAME fingerpost console-link.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			proof, err := os.ReadFile(filepath.Join(data, ops.ProofFile))
			if err != nil {
				return fmt.Errorf("prove that this user may sign in: %w (run it as root or as the server's user, with the "+
					"server's --data)", err)
			}
			url := strings.TrimSuffix(opsURL, "/") + "/console-link"
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodPost, url, nil)
			if err != nil {
				return cli.Usage("--ops-url: %v", err)
			}
			req.Header.Set(ops.ProofHeader, string(proof))
			res, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
			if err != nil {
				return err
			}
			var answer struct{ Links []string }
			if err := json.Unmarshal(body, &answer); err != nil || res.StatusCode != http.StatusOK {
				return cli.No("%s answers %s: %s", opsURL, res.Status, strings.TrimSpace(string(body)))
			}
			for _, link := range answer.Links {
				fmt.Fprintln(t.Out, link)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&opsURL, "ops-url", defaultOpsURL, "address of the server's ops listener")
	cmd.Flags().StringVar(&data, "data", ".fingerpost", "folder of the server's store")
	return cmd
}
