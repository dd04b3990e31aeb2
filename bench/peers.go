package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A peer is a well-known server that can do the work of resolve: answer from memory with the body that belongs to a
// domain.
type peer struct {
	name     string
	programs []string // the names under which it may be installed
	install  string   // how to get it
	// configure returns the arguments that let it listen on addr and keep its files in dir.
	configure func(dir, addr string, r records) ([]string, error)
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
		// Debian installs servers in /usr/sbin, which is not on every PATH.
		for _, path := range []string{name, filepath.Join("/usr/sbin", name)} {
			if path, err := exec.LookPath(path); err == nil {
				return path, nil
			}
		}
	}
	return "", errNotInstalled
}

// startPeer starts a peer and loads the records into it. Its folder is removed at the end of the command.
func (b *bench) startPeer(ctx context.Context, p peer, r records) (*server, error) {
	program, err := p.find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.work, "peer-"+p.name+"-")
	if err != nil {
		return nil, err
	}
	b.atEnd(func() error { return os.RemoveAll(dir) })
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args, err := p.configure(dir, addr, r)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", p.name, err)
	}
	s := &server{name: p.name, addr: addr}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	err = b.start(ctx, s, cmd, func() error { return p.ready(addr) })
	if err == nil && p.fill != nil {
		err = p.fill(ctx, addr, r)
	}
	return s, err
}

const peerTimeout = 2 * time.Minute

// startPeers starts the installed peers. notes names those that are left out.
func (b *bench) startPeers(ctx context.Context, c *corpus, size int, schedule []uint32) (all []target, notes []string) {
	r := records{corpus: c, bodies: floorAnswers(c.corpusParams, size)}
	for _, p := range peers() {
		s, err := b.startPeer(ctx, p, r)
		if err == nil {
			t := known(s, c, schedule)
			if p.protocol != nil {
				t.protocol = p.protocol(s.addr)
			}
			if err = b.warm(ctx, t, min(b.warmUp, warmPeer)); err == nil {
				b.say("started %s with the same %d domains and bodies", p.name, c.Domains)
				all = append(all, t)
				continue
			}
		}
		notes = append(notes, fmt.Sprintf("%s is left out: %v. To have it here: %s.", p.name, err, p.install))
		b.say("%s", notes[len(notes)-1])
	}
	return all, notes
}

// warmPeer bounds the warm-up questions of a peer: some take a hundred times as long as fingerpost.
const warmPeer = 20_000

// nginx has the domains in one map and the key in another, as its configuration can say it.
func nginx() peer {
	return peer{
		name: "nginx", programs: []string{"nginx"},
		install:   "install the package nginx (it need not run), or put the program on the PATH",
		configure: configureNginx,
		ready:     func(addr string) error { return answersHTTP(addr, "/", http.StatusUnauthorized) },
	}
}

const nginxText = `daemon off;
%s
pid %[2]s/nginx.pid;
error_log stderr warn;
worker_processes auto;
events { worker_connections 4096; }
http {
  access_log off;
  server_tokens off;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  variables_hash_max_size 2048;
  map_hash_max_size %[3]d;
  map_hash_bucket_size 256;
  map $http_x_platform_key $known { default 0; "%[4]s" 1; }
  map $arg_domain $answer { default ""; include %[2]s/domains.map; }
  server {
    listen %[5]s;
    default_type "%[6]s";
    location / {
      if ($known = 0) { return 401; }
      if ($answer = "") { return 404; }
      return 200 $answer;
    }
  }
}
`

func configureNginx(dir, addr string, r records) (args []string, err error) {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // workers of another user could not read our folder
	}
	text := fmt.Sprintf(nginxText, user, dir, max(2048, 2*r.corpus.Domains), r.corpus.key, addr, answerType)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "domains.map"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	err = r.each(func(domain, body []byte) error {
		if bytes.ContainsAny(body, `'\$`) {
			return fmt.Errorf("the body of %s has a character that means something to nginx", domain)
		}
		_, err := fmt.Fprintf(out, "%s '%s';\n", domain, body)
		return err
	})
	return []string{"-e", "stderr", "-p", dir, "-c", conf}, errors.Join(err, out.Flush(), f.Close())
}

// redis stores the bodies in memory, and nothing on disk.
func redis() peer {
	return peer{
		name: "Redis", programs: []string{"redis-server", "valkey-server"},
		install: "install the package redis-server or valkey-server (it need not run), or put the program on the PATH",
		configure: func(dir, addr string, _ records) ([]string, error) {
			host, port, err := net.SplitHostPort(addr)
			return []string{"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no",
				"--daemonize", "no"}, err
		},
		ready: func(addr string) error {
			conn, err := net.DialTimeout("tcp", addr, clientTimeout)
			if err != nil {
				return err
			}
			return conn.Close()
		},
		fill:     fillRedis,
		protocol: func(string) protocol { return redisGet{} },
	}
}

// fillRedis sets all records in one stream. Redis keeps its answers, "+OK" each, until they are read.
func fillRedis(_ context.Context, addr string, r records) error {
	conn, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(peerTimeout)); err != nil {
		return err
	}
	out := bufio.NewWriterSize(conn, 1<<16)
	var command []byte
	err = r.each(func(domain, body []byte) error {
		command = append(command[:0], "*3\r\n$3\r\nSET\r\n"...)
		command = appendBulk(appendBulk(command, domain), body)
		_, err := out.Write(command)
		return err
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	answers := make([]byte, r.corpus.Domains*len("+OK\r\n"))
	if _, err := io.ReadFull(conn, answers); err != nil {
		return err
	}
	if n := bytes.Count(answers, []byte("+OK\r\n")); n != r.corpus.Domains {
		return fmt.Errorf("%d of %d records were set", n, r.corpus.Domains)
	}
	return nil
}

// etcd runs as one node. It is asked over its JSON gateway and answers from its own state.
func etcd() peer {
	return peer{
		name: "etcd", programs: []string{"etcd"},
		install:   "install the package etcd-server (it need not run), or put the program on the PATH",
		configure: configureEtcd,
		ready:     func(addr string) error { return answersHTTP(addr, "/health", http.StatusOK) },
		fill:      fillEtcd,
		protocol:  func(addr string) protocol { return &etcdRange{addr: addr} },
	}
}

func configureEtcd(dir, addr string, _ records) ([]string, error) {
	peerAddr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	clients, others := "http://"+addr, "http://"+peerAddr
	return []string{
		"--name", "bench", "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", others, "--initial-advertise-peer-urls", others, "--initial-cluster", "bench=" + others,
		"--quota-backend-bytes", fmt.Sprint(8 << 30), "--log-level", "error", "--logger", "zap",
	}, nil
}

// fillEtcd stores the records in transactions of the largest default size.
func fillEtcd(ctx context.Context, addr string, r records) error {
	const most = 128
	var puts []string
	client := &http.Client{Timeout: peerTimeout}
	flush := func() error {
		text := `{"success":[` + strings.Join(puts, ",") + `]}`
		puts = puts[:0]
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v3/kv/txn", strings.NewReader(text))
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var answer struct{ Succeeded bool }
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || !answer.Succeeded {
			return fmt.Errorf("put %d records: %s, %v", most, res.Status, err)
		}
		return nil
	}
	err := r.each(func(domain, body []byte) error {
		puts = append(puts, fmt.Sprintf(`{"requestPut":{"key":%q,"value":%q}}`,
			base64.StdEncoding.EncodeToString(domain), base64.StdEncoding.EncodeToString(body)))
		if len(puts) == most {
			return flush()
		}
		return nil
	})
	if err == nil && len(puts) > 0 {
		err = flush()
	}
	return err
}
