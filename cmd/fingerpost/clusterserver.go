package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"fingerpost/configsrc/cluster/natsd"
)

// clusterServer is the command of the built-in NATS server's process.
const clusterServer = "cluster-server"

// newClusterServer is started by serve alone, and ends with it: its stdin ends.
func newClusterServer(t terminal) *cobra.Command {
	return &cobra.Command{
		Use:    clusterServer,
		Short:  "The NATS server of serve --cluster-listen, which starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			// A terminal or a service manager sends signals to all processes. serve drains first, and needs it until then.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return natsd.Run(t.in, t.out, t.err)
		},
	}
}
