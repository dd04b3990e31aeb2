// Command fingerpost answers which project a domain belongs to and how it is configured, from HCL files kept in git.
// See cmd/fingerpost/README.md, and "fingerpost help".
package main

import (
	"context"
	"os"

	"fingerpost/cmd/fingerpost/cli"
)

func main() {
	os.Exit(runContext(context.Background(), os.Args[1:], cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
