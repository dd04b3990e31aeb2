package main

import (
	"github.com/spf13/pflag"
)

// consoleFlags are the flags of serve about the web console.
type consoleFlags struct {
	console       bool
	consoleListen string
}

func (f *consoleFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.console, "console", true, "serve the web console at /console/")
	fl.StringVar(&f.consoleListen, "console-listen", "", "address of the console alone (default that of --listen)")
}

func (f *consoleFlags) check() error {
	if !f.console && f.consoleListen != "" {
		return usage("--console-listen and --console=false contradict each other: leave one of them out")
	}
	return nil
}
