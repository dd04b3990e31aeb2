// Package conformance is the table that every client which caches answers must pass, in any language: cases with their
// steps and the answers that the client must give. The tests of this package are its runner. They start the real
// binary behind a proxy that misbehaves, and drive a client through a driver program, which reads one request as a line
// of JSON from standard input and writes an answer with the same id to standard output, in any order:
//
//	{"id":1,"do":"open","url":…,"key":…,"file":…,"fresh":ms,"maxStale":ms,"maxEntries":n,"maxNegative":n,"warm":[…]}
//	{"id":2,"do":"lookup","host":…,"timeout":ms}    {"id":2,"tenant":{…}} or {"id":2,"error":"unknown"}
//	{"id":3,"do":"ready","timeout":ms}              "ok" or "error", as for open, advance and close
//	{"id":4,"do":"status"}                          {"id":4,"status":{…}}
//	{"id":5,"do":"changes"}                         {"id":5,"hosts":[…]}: what OnChange got since the last request
//	{"id":6,"do":"advance","by":ms}                 moves the client's clock; timers that have become due run
//	{"id":7,"do":"close"}
//
// The driver of the Go client is this package's test program (godriver_test.go). That of the TypeScript client runs if
// FINGERPOST_CLIENT_TS names the folder of the built package.
package conformance

import (
	"bytes"
	_ "embed" // the table
	"encoding/json"
)

// A Case is one row of the table. It begins with a running server and a new driver.
type Case struct {
	Name  string `json:"name"`
	Needs string `json:"needs,omitempty"` // "mount": the rights to mount a disk; "edge": a second node
	Steps []Step `json:"steps"`
}

// A Step does one thing, or expects one.
type Step struct {
	Open   *Open `json:"open,omitempty"`
	Ready  bool  `json:"ready,omitempty"`  // it must end without an error
	Driver bool  `json:"driver,omitempty"` // the client's process is killed and started again
	Close  bool  `json:"close,omitempty"`

	// Lookup asks for a host and expects Slug and Domain, or Error, and Stale. Eventually asks again until it is so.
	Lookup     string `json:"lookup,omitempty"`
	Timeout    int    `json:"timeout,omitempty"`  // of the lookup, in milliseconds
	Together   int    `json:"together,omitempty"` // as many lookups at the same time
	Slug       string `json:"slug,omitempty"`
	Domain     string `json:"domain,omitempty"`
	Error      string `json:"error,omitempty"`
	Stale      *bool  `json:"stale,omitempty"`
	Eventually bool   `json:"eventually,omitempty"`

	Connected *bool    `json:"connected,omitempty"` // waits until the status says so
	Entries   *int     `json:"entries,omitempty"`   // of the status
	Negatives *int     `json:"negatives,omitempty"` // of the status
	Failing   bool     `json:"failing,omitempty"`   // the status has an error
	Changes   []string `json:"changes,omitempty"`   // waits until these were reported
	Questions *int     `json:"questions,omitempty"` // that have reached the proxy since the last such step

	Advance int64              `json:"advance,omitempty"` // moves the client's clock, in milliseconds
	Server  string             `json:"server,omitempty"`  // kill, stop, start
	Proxy   string             `json:"proxy,omitempty"`   // pass, hang, half, html, redirect, limited
	Cut     bool               `json:"cut,omitempty"`     // open connections
	Node    string             `json:"node,omitempty"`    // that the proxy leads to: authority, edge
	Files   map[string]*string `json:"files,omitempty"`   // of the server; null removes one; waits until the node has them
	Damage  bool               `json:"damage,omitempty"`  // the client's file
	Fill    bool               `json:"fill,omitempty"`    // the disk of the client's file
}

// Open is what the client is opened with. Times are in milliseconds.
type Open struct {
	Key         string   `json:"key,omitempty"`  // all, acme, ghost; "": all
	File        string   `json:"file,omitempty"` // disk, small (a disk of a few kilobytes), readonly; "": none
	Fresh       int64    `json:"fresh,omitempty"`
	MaxStale    int64    `json:"maxStale,omitempty"`
	MaxEntries  int      `json:"maxEntries,omitempty"`
	MaxNegative int      `json:"maxNegative,omitempty"`
	Warm        []string `json:"warm,omitempty"`
}

//go:embed table.json
var table []byte

// Cases returns the table.
func Cases() (cases []Case, err error) {
	d := json.NewDecoder(bytes.NewReader(table))
	d.DisallowUnknownFields()
	err = d.Decode(&cases)
	return cases, err
}
