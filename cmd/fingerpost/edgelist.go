package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/datadir"
)

// edgesFlags are the flags of edges.
type edgesFlags struct {
	cli.ConnectFlags
	data  string
	wait  string
	json  bool
	every time.Duration
}

func newEdges(t cli.Terminal) *cobra.Command {
	var f edgesFlags
	cmd := &cobra.Command{
		Use:   "edges [--url URL --key KEY | --data DIR]",
		Short: "Every edge of the cluster: version, generation, lag, heartbeat",
		Long: "Asks a running server of the cluster; an edge asks the authority.\n\n" +
			"With --wait GENERATION it ends with 0 once every edge that is ready has that generation, and with 1 if --timeout\n" +
			"comes first. An edge that is not ready is not waited for. The generation is in X-Config-Generation of a write's\n" +
			"answer, and in the log line of a reload. With --wait COMMIT it first waits until the authority (serve --git) " +
			"has the\n" +
			"commit, by a pull or as an API write; give the full id, as git rev-parse and X-Commit have it.\n\n" +
			"With --data it lists the edges that the store of a server declares which does not run.",
		Example: `  fingerpost edges --wait "$(git rev-parse HEAD)" --timeout 2m   # in a deploy script, after git push`,
		Args:    cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if !cli.Given(cmd, "data") {
				f.data = "" // the variable is that of serve, whose store is open while it runs
			}
			return showEdges(cmd.Context(), t, f)
		}),
	}
	f.ConnectFlags.Add(cmd, "read every project")
	fl := cmd.Flags()
	f.Local(cmd)
	fl.StringVar(&f.wait, "wait", "",
		"wait until every ready edge has this generation, position EPOCH.GENERATION, or commit")
	fl.StringVar(&f.data, "data", "", "folder of the store of a server that does not run")
	fl.DurationVar(&f.every, "every", 200*time.Millisecond, "interval between two questions of --wait")
	fl.BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	fl.Lookup("timeout").Usage = "time that one request may take, and that --wait waits"
	cmd.AddCommand(newEdgesKeygen(t))
	return cmd
}

func showEdges(ctx context.Context, t cli.Terminal, f edgesFlags) error {
	var bad []string
	var want client.Target
	if f.wait != "" {
		var err error
		if want, err = client.ParseTarget(f.wait); err != nil {
			bad = append(bad, fmt.Sprintf("--wait %q must be a generation such as 812, a position such as "+
				"0123456789abcdef.812, or the full id of a commit", f.wait))
		}
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if f.data != "" && f.wait != "" {
		bad = append(bad, "--data shows the store of a server that does not run: leave out --wait")
	}
	if err := cli.UsageAll(bad); err != nil {
		return err
	}
	if f.data != "" {
		return storedEdges(t, f)
	}
	o, err := f.Options()
	if err != nil {
		return err
	}
	if f.wait != "" { // else the time would end in a question, and the answer be that of a server that is away
		o.Timeout = max(o.Timeout, cli.RequestTimeout)
	}
	server := client.New(o)
	if f.wait != "" {
		return waitEdges(ctx, t, f, server, &want)
	}
	edges, err := server.Edges(ctx)
	if err != nil {
		return noCluster(err)
	}
	return printEdges(t, f.json, edges)
}

// waitEdges asks until every ready edge has what is wanted, or --timeout has passed.
func waitEdges(ctx context.Context, t cli.Terminal, f edgesFlags, server *client.Client, want *client.Target) error {
	for end := time.Now().Add(f.Timeout); ; {
		edges, err := server.Edges(ctx)
		if err != nil && (ctx.Err() != nil || !cli.Passing(err)) {
			return noCluster(err)
		}
		var late []string
		if err == nil {
			late, err = server.Behind(ctx, edges, want)
		}
		if err == nil && len(late) == 0 {
			return printEdges(t, f.json, edges)
		}
		if err != nil && (!cli.Passing(err) || time.Now().After(end)) {
			return err
		}
		if time.Now().After(end) {
			_ = printEdges(t, f.json, edges)
			return cli.No("after %v %s is not on every ready edge: %s", f.Timeout, f.wait, strings.Join(late, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.every):
		}
	}
}

// storedEdges shows the edges that the store of a server declares which does not run: nobody has heard them.
func storedEdges(t cli.Terminal, f edgesFlags) error {
	s, err := datadir.OpenStored(f.data, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("%w (--data reads the store of a server that does not run; ask one that runs by --url)", err)
	}
	defer s.Close()
	declared, err := s.Edges()
	if err != nil {
		return err
	}
	var edges []client.Edge
	for _, e := range declared {
		edges = append(edges, client.Edge{Name: e.Name})
	}
	return printEdges(t, f.json, edges)
}

// noCluster explains the 404 of a server that belongs to no cluster.
func noCluster(err error) error {
	if client.Status(err, http.StatusNotFound) {
		return cli.No("the server belongs to no cluster: serve --cluster-listen makes one, see configsrc/cluster/README.md")
	}
	return err
}

func printEdges(t cli.Terminal, asJSON bool, edges []client.Edge) error {
	if asJSON {
		return cli.PrintJSON(t.Out, append([]client.Edge{}, edges...))
	}
	if len(edges) == 0 {
		_, err := io.WriteString(t.Out, "no edge is declared or has been heard\n")
		return err
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EDGE\tREADY\tGENERATION\tLAG\tLAST HEARTBEAT\tVERSION\tPROBLEM")
	for _, e := range edges {
		ready, beat := "no", "never"
		if e.Ready {
			ready = "yes"
		}
		if e.Version != "" {
			beat = fmt.Sprintf("%.0f ms ago", e.BeatAgeMS)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f ms\t%s\t%s\t%s\n", e.Name, ready, e.Generation, e.LagMS, beat, e.Version, e.Problem)
	}
	return w.Flush()
}
