package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
)

// edgesFlags are the flags of edges.
type edgesFlags struct {
	connectFlags
	wait  string
	json  bool
	every time.Duration
}

func newEdges(t terminal) *cobra.Command {
	var f edgesFlags
	cmd := &cobra.Command{
		Use:   "edges [--url URL --key KEY]",
		Short: "Every edge of the cluster: version, generation, lag, heartbeat",
		Long: "Asks a running server of the cluster; an edge asks the authority.\n\n" +
			"With --wait GENERATION it ends with 0 once every edge that is ready has that generation, and with 1 if --timeout\n" +
			"comes first. An edge that is not ready is not waited for. The generation is in X-Config-Generation of a write's\n" +
			"answer, and in the log line of a reload.",
		Args: cobra.NoArgs,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error { return showEdges(cmd.Context(), t, f) }),
	}
	f.connectFlags.add(cmd, "read every project")
	fl := cmd.Flags()
	f.url = "http://127.0.0.1:8080"
	fl.Lookup("url").DefValue = f.url
	fl.StringVar(&f.wait, "wait", "", "wait until every ready edge has this generation, or position EPOCH.GENERATION")
	fl.DurationVar(&f.every, "every", 200*time.Millisecond, "how often --wait asks")
	fl.BoolVar(&f.json, "json", false, "one JSON document on stdout")
	cmd.AddCommand(newEdgesKeygen(t))
	fl.Lookup("timeout").Usage = "how long one request may take, and with --wait, how long to wait"
	cmd.AddCommand(newEdgesKeygen(t))
	return cmd
}

func showEdges(ctx context.Context, t terminal, f edgesFlags) error {
	var bad []string
	generation, epoch := uint64(0), ""
	if f.wait != "" {
		digits := f.wait
		if before, after, found := strings.Cut(f.wait, "."); found {
			epoch, digits = before, after
		}
		var err error
		if generation, err = strconv.ParseUint(digits, 10, 64); err != nil {
			bad = append(bad, fmt.Sprintf("--wait %q must be a generation such as 812, or a position such as 0123456789abcdef.812", f.wait))
		}
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if err := usageAll(bad); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	server := client.New(o)
	if f.wait == "" {
		edges, err := server.Edges(ctx)
		if err != nil {
			return noCluster(err)
		}
		return printEdges(t, f.json, edges)
	}
	end := time.Now().Add(f.timeout)
	for {
		edges, err := server.Edges(ctx)
		if err != nil && (ctx.Err() != nil || !passing(err)) {
			return noCluster(err)
		}
		late := behind(edges, generation, epoch)
		if err == nil && len(late) == 0 {
			return printEdges(t, f.json, edges)
		}
		if time.Now().After(end) {
			if err != nil {
				return err
			}
			_ = printEdges(t, f.json, edges)
			return no("after %v generation %s is not on every ready edge: %s", f.timeout, f.wait, strings.Join(late, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.every):
		}
	}
}

// noCluster explains the 404 of a server that belongs to no cluster.
func noCluster(err error) error {
	if client.Status(err, http.StatusNotFound) {
		return no("the server belongs to no cluster: serve --cluster-listen makes one, see configsrc/cluster/README.md")
	}
	return err
}

// behind names the ready edges that do not have a generation.
func behind(edges []client.Edge, generation uint64, epoch string) (names []string) {
	for _, e := range edges {
		has := e.Generation >= generation && (epoch == "" || strings.HasPrefix(e.Position, epoch+"."))
		if e.Ready && !has {
			names = append(names, fmt.Sprintf("%s has %d", e.Name, e.Generation))
		}
	}
	return names
}

func printEdges(t terminal, asJSON bool, edges []client.Edge) error {
	if asJSON {
		return printJSON(t.out, append([]client.Edge{}, edges...))
	}
	if len(edges) == 0 {
		_, err := io.WriteString(t.out, "no edge is declared or has been heard\n")
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
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
