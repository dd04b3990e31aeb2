//go:build !linux

package main

import "os/exec"

func endWithBench(*exec.Cmd) {}
