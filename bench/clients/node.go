package clients

import (
	"bufio"
	"context"
	_ "embed" // the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed node.mjs
var program string

// A Node is a TypeScript client in Node with its answers in memory.
type Node struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	log   strings.Builder
	Bytes int64 // of the answers, in Node's heap
}

// ErrNoNode says that Node, or the built package, is not there.
var ErrNoNode = errors.New("needs node, and the folder of the built package api/client-ts in FINGERPOST_CLIENT_TS")

// OpenNode is OpenGo for a client in Node, which ends with ctx.
func OpenNode(ctx context.Context, s *Server, entries int) (*Node, error) {
	node, err := exec.LookPath("node")
	folder := os.Getenv("FINGERPOST_CLIENT_TS")
	if err != nil || folder == "" {
		return nil, ErrNoNode
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	n := &Node{cmd: exec.CommandContext(ctx, node, "--expose-gc", "--max-old-space-size=8192", "--input-type=module",
		"--eval", program, "--", folder, s.URL, s.Suffix, s.Slug, strconv.Itoa(entries))}
	n.cmd.Env = append(os.Environ(), "FINGERPOST_KEY="+s.Key)
	n.cmd.Stderr = &n.log
	var err1, err2 error
	n.in, err1 = n.cmd.StdinPipe()
	out, err2 := n.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	n.out = bufio.NewScanner(out)
	var ready struct{ Bytes int64 }
	if err := n.read(&ready); err != nil {
		return nil, err
	}
	n.Bytes = ready.Bytes
	return n, nil
}

func (n *Node) read(into any) error {
	if !n.out.Scan() {
		_ = n.cmd.Wait()
		return fmt.Errorf("node has ended: %s", n.log.String())
	}
	return json.Unmarshal(n.out.Bytes(), into)
}

// Hits looks names up for a time, one after the other.
func (n *Node) Hits(d time.Duration) (hits int64, took time.Duration, err error) {
	if _, err := fmt.Fprintln(n.in, d.Milliseconds()); err != nil {
		return 0, 0, err
	}
	var a struct {
		Hits int64
		MS   float64
	}
	err = n.read(&a)
	return a.Hits, time.Duration(a.MS * float64(time.Millisecond)), err
}

// Close ends the process.
func (n *Node) Close() error {
	_ = n.in.Close()
	return n.cmd.Wait()
}
