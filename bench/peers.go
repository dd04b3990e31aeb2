package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
    listen 127.0.0.1:%[5]d;
    default_type "%[6]s";
    location / {
      if ($known = 0) { return 401; }
      if ($answer = "") { return 404; }
      return 200 $answer;
    }
  }
}
`

func configureNginx(dir string, port int, r records) (args []string, err error) {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // workers of another user could not read our folder
	}
	text := fmt.Sprintf(nginxText, user, dir, max(2048, 2*r.corpus.Domains), r.corpus.key, port, answerType)
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
		configure: func(dir string, port int, _ records) ([]string, error) {
			return []string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, nil
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

// fillRedis sets all records in one stream, and reads as many "+OK".
func fillRedis(_ context.Context, addr string, r records) error {
	conn, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(peerStartTimeout)); err != nil {
		return err
	}
	said := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(conn)
		for i := range r.corpus.Domains {
			if !lines.Scan() || lines.Text() != "+OK" {
				said <- fmt.Errorf("SET %d of %d: %q, %v", i+1, r.corpus.Domains, lines.Text(), lines.Err())
				conn.Close() // ends the writing goroutine
				return
			}
		}
		said <- nil
	}()
	out := bufio.NewWriterSize(conn, 1<<16)
	var command []byte
	err = r.each(func(domain, body []byte) error {
		command = append(command[:0], "*3\r\n$3\r\nSET\r\n"...)
		command = appendBulk(appendBulk(command, domain), body)
		_, err := out.Write(command)
		return err
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		conn.Close() // ends the reading goroutine
	}
	return errors.Join(<-said, err)
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

func configureEtcd(dir string, port int, _ records) ([]string, error) {
	peerPort, err := freePort()
	if err != nil {
		return nil, err
	}
	clients, others := fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--name", "bench", "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", others, "--initial-advertise-peer-urls", others, "--initial-cluster", "bench=" + others,
		"--quota-backend-bytes", fmt.Sprint(8 << 30), "--log-level", "error", "--logger", "zap",
	}, nil
}

// fillEtcd stores the records in transactions of the largest default size.
func fillEtcd(ctx context.Context, addr string, r records) error {
	const most = 128
	var puts []string
	client := &http.Client{Timeout: peerStartTimeout}
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
