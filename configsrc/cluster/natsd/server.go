package natsd

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Config is what the supervising process tells the server's process, one JSON document a line. The first line
// starts the server. Each further one replaces Edges, and nothing else.
type Config struct {
	Listen    string            `json:"listen"`    // host:port; port 0: any
	Dir       string            `json:"dir"`       // of the stream's files
	Name      string            `json:"name"`      // of the server
	Authority string            `json:"authority"` // public nkey that may do everything
	Edges     map[string]string `json:"edges"`     // public nkeys by the names of edges
	Grants    Grants            `json:"grants"`
	Cert      string            `json:"cert,omitempty"`
	Key       string            `json:"key,omitempty"`
	ClientCA  string            `json:"clientCA,omitempty"` // PEM file: clients need a certificate of one of these CAs
}

// A serverReady is the line on the server's stdout once it takes connections.
type serverReady struct {
	Addr  string `json:"addr"`  // for edges
	Local string `json:"local"` // for the authority, without TLS
}

// MaxPayload is the largest message, in bytes: more than the largest request body and the largest file
// (configsrc/README.md).
const MaxPayload = 8 << 20

// Run is the server's process: it serves until in ends, which happens when the supervising process does. The
// files of the stream are synced at each publish, so an end at any moment loses nothing.
func Run(in io.Reader, out, log io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	var config Config
	if !lines.Scan() {
		return errors.New("the supervising process has ended")
	}
	if err := json.Unmarshal(lines.Bytes(), &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	srv, ready, err := startServer(&config, log)
	if err != nil {
		return err
	}
	defer srv.Shutdown()
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return err
	}
	for lines.Scan() {
		var next Config
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return fmt.Errorf("read the configuration: %w", err)
		}
		config.Edges = next.Edges
		if err := reload(srv, &config); err != nil {
			return fmt.Errorf("take the new edges: %w", err)
		}
	}
	return lines.Err()
}

// reload lets in the edges of config. Connections of keys that are gone are closed.
func reload(srv *server.Server, config *Config) error {
	// the imports of an account that is new work from the next reload on (configureAccounts in its server.go)
	for range 2 {
		options, err := config.options()
		if err == nil {
			err = srv.ReloadOptions(options)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func startServer(config *Config, log io.Writer) (*server.Server, *serverReady, error) {
	// The library would end the process with a message of its own.
	probe, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, nil, err
	}
	probe.Close()
	options, err := config.options()
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.NewServer(options)
	if err != nil {
		return nil, nil, fmt.Errorf("make the NATS server: %w", err)
	}
	srv.SetLoggerV2(&serverLog{w: log}, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		srv.Shutdown()
		return nil, nil, errors.New("the NATS server did not get ready")
	}
	ready := &serverReady{Addr: srv.Addr().String()}
	if ready.Local = ready.Addr; config.Cert != "" {
		if ready.Local, err = serveLocal(srv); err != nil {
			srv.Shutdown()
			return nil, nil, err
		}
	}
	return srv, ready, nil
}

func (c *Config) options() (*server.Options, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", port, err)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	o := &server.Options{
		Host: host, Port: number, ServerName: c.Name,
		JetStream: true, StoreDir: c.Dir, SyncAlways: true, JetStreamMaxMemory: 64 << 20,
		MaxPayload: MaxPayload, MaxPending: 64 << 20, WriteDeadline: 10 * time.Second,
		PingInterval: 10 * time.Second, MaxPingsOut: 2, AuthTimeout: 5,
		NoSigs: true, DisableJetStreamBanner: true,
	}
	accounts, err := c.accounts()
	if err != nil {
		return nil, err
	}
	if err := o.ProcessConfigString(accounts); err != nil {
		return nil, fmt.Errorf("make the accounts: %w", err)
	}
	if c.Cert != "" {
		if o.TLSConfig, err = c.tls(); err != nil {
			return nil, err
		}
		o.TLS, o.TLSVerify, o.TLSTimeout = true, c.ClientCA != "", 5
	}
	return o, nil
}

func (c *Config) tls() (*tls.Config, error) {
	if _, err := tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
		return nil, fmt.Errorf("certificate %s: %w", c.Cert, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Read at every handshake, which is rare: a renewed certificate is used without a restart.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			return &pair, err
		},
	}
	if c.ClientCA != "" {
		pem, err := os.ReadFile(c.ClientCA)
		if err != nil {
			return nil, err
		}
		if config.ClientCAs = x509.NewCertPool(); !config.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", c.ClientCA)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// serveLocal takes the authority's connections on loopback, without TLS, which would have to trust its own certificate.
// They need the authority's key as all others do. It ends with the process.
func serveLocal(srv *server.Server) (addr string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			outside, err := ln.Accept()
			if err != nil {
				return
			}
			inside, err := srv.InProcessConn()
			if err != nil {
				outside.Close()
				return
			}
			go join(outside, inside)
		}
	}()
	return ln.Addr().String(), nil
}

// join copies both ways until one side ends.
func join(a, b net.Conn) {
	var once sync.Once
	end := func() { once.Do(func() { a.Close(); b.Close() }) }
	go func() {
		defer end()
		_, _ = io.Copy(a, b)
	}()
	defer end()
	_, _ = io.Copy(b, a)
}

// A serverLog writes what an operator must know, one line each.
type serverLog struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *serverLog) write(format string, v []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, strings.ReplaceAll(fmt.Sprintf(format, v...), "\n", " "))
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(string, ...any) {}

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.write(format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.write(format, v) }

// Fatalf implements server.Logger. The library counts on it to end the process.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.write(format, v)
	os.Exit(3)
}

// Debugf implements server.Logger.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (l *serverLog) Tracef(string, ...any) {}
