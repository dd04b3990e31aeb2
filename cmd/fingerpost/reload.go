package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
)

func newReload(t cli.Terminal) *cobra.Command {
	var ops string
	confirm := false
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make a running server look at its files now",
		Long: "Asks the ops listener of a running server. With --confirm, a reload that is held back because it would " +
			"remove\n" +
			"too much goes through, once.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/reload"
			if confirm {
				path = "/reload/confirm"
			}
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodPost, strings.TrimSuffix(ops, "/")+path, nil)
			if err != nil {
				return cli.Usage("--ops-url: %v", err)
			}
			res, err := (&http.Client{Timeout: 2 * time.Minute}).Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
			if err != nil {
				return err
			}
			if json.Valid(body) {
				fmt.Fprintln(t.Out, strings.TrimSpace(string(body)))
			}
			if res.StatusCode != http.StatusOK {
				return cli.No("%s answers %s", ops, res.Status)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&ops, "ops-url", defaultOpsURL, "address of the server's ops listener")
	cmd.Flags().BoolVar(&confirm, "confirm", false, "let a reload through that is held back")
	return cmd
}
