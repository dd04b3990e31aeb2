package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A peer is a well-known server that can do the work of resolve: answer from memory with the body that belongs to a
// domain.
type peer struct {
	name     string
	programs []string // the names under which it may be installed
	install  string   // how to get it
	// configure returns the arguments that let it listen on 127.0.0.1:port and keep its files in dir.
	configure func(dir string, port int, r records) ([]string, error)
	// ready returns an error until the peer answers.
	ready func(addr string) error
	// fill loads the records into the started peer; nil: configure did.
	fill func(ctx context.Context, addr string, r records) error
	// protocol is its protocol; nil: that of fingerpost.
	protocol func(addr string) protocol
}

func peers() []peer {
	return []peer{nginx(), redis(), etcd()}
}

// records are the names of a corpus, each with the body that the floor has for it.
type records struct {
	corpus *corpus
	bodies [][]byte // by project
}

// each calls f with all records in turn until it fails.
func (r records) each(f func(domain, body []byte) error) error {
	var host []byte
	for n := range r.corpus.Domains {
		host = r.corpus.appendHost(host[:0], n)
		if err := f(host, r.bodies[n/r.corpus.perProject()]); err != nil {
			return err
		}
	}
	return nil
}

var errNotInstalled = errors.New("it is not installed")

// find returns the installed program.
func (p peer) find() (string, error) {
	for _, name := range p.programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	// Debian installs servers there, which is not on every PATH.
	for _, name := range p.programs {
		if path, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
			return path, nil
		}
	}
	return "", errNotInstalled
}

// start starts the peer and loads the records into it. stop ends it and removes its folder.
func (p peer) start(ctx context.Context, work string, r records) (s *server, stop func(), err error) {
	program, err := p.find()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(work, "peer-"+p.name+"-")
	if err != nil {
		return nil, nil, err
	}
	s, err = p.run(ctx, program, dir, r)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() {
		s.stop()
		_ = os.RemoveAll(dir) // what remains is in the work folder
	}, nil
}

func (p peer) run(ctx context.Context, program, dir string, r records) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args, err := p.configure(dir, port, r)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", p.name, err)
	}
	logPath := filepath.Join(filepath.Dir(dir), "peer-"+p.name+".log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	s := &server{name: p.name, addr: fmt.Sprintf("127.0.0.1:%d", port), cmd: exec.Command(program, args...), ended: make(chan struct{})}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, logFile, logFile
	endWithBench(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	s.pid = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait() // the log has its last output
		close(s.ended)
	}()
	err = p.await(ctx, s)
	if err == nil && p.fill != nil {
		err = p.fill(ctx, s.addr, r)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start %s: %w (its log is %s)", p.name, err, logPath)
	}
	return s, nil
}

const peerStartTimeout = 2 * time.Minute

func (p peer) await(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, peerStartTimeout)
	defer cancel()
	for {
		err := p.ready(s.addr)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended: %v", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("it does not become ready: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort returns a port that is free now: these programs cannot choose one themselves.
func freePort() (int, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// answersHTTP returns an error unless a GET of the path has the status.
func answersHTTP(addr, path string, status int) error {
	res, err := fetch("http://" + addr + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		return fmt.Errorf("GET %s: %s, want %d", path, res.Status, status)
	}
	return nil
}

// peerSides starts the installed peers, which run until stop is called. notes names those that are left out.
func (b *bench) peerSides(ctx context.Context, c *corpus, size int, schedule []uint32) (sides []*side, notes []string, stop func()) {
	r := records{corpus: c, bodies: floorAnswers(c.corpusParams, size)}
	var stops []func()
	for _, p := range peers() {
		s, end, err := p.start(ctx, b.work, r)
		if err == nil {
			side := known(s, c, schedule)
			if p.protocol != nil {
				side.protocol = p.protocol(s.addr)
			}
			if err = b.warm(ctx, side, min(b.load.warmUp, warmPeer)); err == nil {
				b.say("started %s with the same %d domains and bodies", p.name, c.Domains)
				sides, stops = append(sides, side), append(stops, end)
				continue
			}
			end()
		}
		note := fmt.Sprintf("%s is left out: %v. To have it here: %s.", p.name, err, p.install)
		b.say("%s", note)
		notes = append(notes, note)
	}
	return sides, notes, func() {
		for _, end := range stops {
			end()
		}
	}
}

// warmPeer bounds the warm-up questions of a peer: some take a hundred times as long as fingerpost.
const warmPeer = 20_000
