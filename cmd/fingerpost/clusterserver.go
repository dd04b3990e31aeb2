package main

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/cluster/natsd"
)

// clusterServer is the command of the built-in NATS server's process.
const clusterServer = "cluster-server"

// newClusterServer is started by serve alone, and ends with it: its stdin ends.
func newClusterServer(t cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    clusterServer,
		Short:  "The NATS server of serve --cluster-listen, which starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			// A terminal or a service manager sends signals to all processes. serve drains first, and needs it until then.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return natsd.Run(t.In, t.Out, t.Err)
		},
	}
}

// serverMemory is what the built-in server's heap is held to, in the form of GOMEMLIMIT.
const serverMemory = "512MiB"

// serverCommand returns what makes the command of the server's process. It gets none of the variables of our flags.
func serverCommand() (func() *exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func() *exec.Cmd {
		cmd := exec.Command(program, clusterServer)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, cli.EnvPrefix) {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, "GOMEMLIMIT="+serverMemory)
		return cmd
	}, nil
}
