//go:build !linux

package main

import "errors"

func swapFiles(string, string) error { return errors.ErrUnsupported }

func syncDisks() {}

const fsTmpfs = "tmpfs"

func fileSystem(string) (string, error) { return "unknown", nil }
