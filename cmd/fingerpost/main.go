// Command fingerpost answers which project a domain belongs to and how it is configured, from HCL files kept in git.
// See README.md, and "fingerpost help".
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
