package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// nginxName names the program and the target: a well-known server that can do the work of resolve, which is to answer
// from memory with the body that belongs to a domain.
const nginxName = "nginx"

const getNginx = "install the package nginx (it need not run), or put the program on the PATH"

// findNginx returns the installed program. Debian installs servers in /usr/sbin, which is not on every PATH.
func findNginx() (string, error) {
	path, err := exec.LookPath(nginxName)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return "", errors.New("it is not installed")
	}
	return path, nil
}

// nginx starts nginx with the names of a corpus, each with the body of size bytes that the floor has for it. Its
// folder is removed at the end of the command.
func (b *bench) nginx(ctx context.Context, c *corpus, size int) (*server, error) {
	program, err := findNginx()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.work, "peer-nginx-")
	if err != nil {
		return nil, err
	}
	b.atEnd(func() error { return os.RemoveAll(dir) })
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf, err := configureNginx(dir, addr, c, size)
	if err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	s := &server{name: nginxName, addr: addr}
	cmd := exec.Command(program, "-e", "stderr", "-p", dir, "-c", conf)
	cmd.Dir = dir
	return s, b.start(ctx, s, cmd, func() error { return answersHTTP(addr, "/", 401) })
}

// nginxText is a configuration with the domains in one map and the key in another.
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

// configureNginx writes the configuration and returns its path.
func configureNginx(dir, addr string, c *corpus, size int) (conf string, err error) {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // workers of another user could not read our folder
	}
	text := fmt.Sprintf(nginxText, user, dir, max(2048, 2*c.Domains), c.key, addr, answerType)
	conf = filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "domains.map"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	bodies := floorAnswers(c.Projects, size)
	for n := range c.Domains {
		domain, body := c.appendHost(nil, n), bodies[n/c.perProject()]
		if bytes.ContainsAny(body, `'\$`) {
			err = fmt.Errorf("the body of %s has a character that means something to nginx", domain)
			break
		}
		fmt.Fprintf(out, "%s '%s';\n", domain, body) // out keeps the error for Flush
	}
	return conf, errors.Join(err, out.Flush(), f.Close())
}
