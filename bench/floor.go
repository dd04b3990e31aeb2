package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// floorCommand is the hidden sub-command with which bench runs itself as a baseline.
const floorCommand = "floor"

// The kinds of baseline. The floor does the least that this work needs: read the key header, read the query argument,
// write one of many ready bodies. A constant body needs less, because it never leaves the processor's caches. net/http
// does the floor's work with the standard library's server.
const (
	kindFloor    = "floor"
	kindConstant = "constant body"
	kindNetHTTP  = "net/http"
)

// baseline starts this program itself as one of the kinds of baseline, with bodies of a size.
func (b *bench) baseline(ctx context.Context, kind string, c *corpus, size int) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", kind, err)
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{name: kind, addr: addr}
	cmd := exec.Command(self, floorCommand, "-kind", kind, "-listen", addr, "-key", c.key, "-size", fmt.Sprint(size),
		"-projects", fmt.Sprint(c.Projects), "-domains", fmt.Sprint(c.Domains), "-seed", fmt.Sprint(c.Seed))
	return s, b.start(ctx, s, cmd, func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// runFloor serves a baseline until ctx ends.
func runFloor(ctx context.Context, args []string) error {
	var p corpusParams
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	kind := flags.String("kind", kindFloor, "which baseline")
	listen := flags.String("listen", "127.0.0.1:0", "the address")
	key := flags.String("key", "", "the key")
	size := flags.Int("size", 977, "size of a body in bytes")
	flags.IntVar(&p.Projects, "projects", 100_000, "projects, and so bodies")
	flags.IntVar(&p.Domains, "domains", 300_000, "domains in all projects, on which their slugs depend")
	flags.Uint64Var(&p.Seed, "seed", 1, "seed of the corpus")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	bodies := floorAnswers(p, *size)
	ln, err := net.Listen("tcp4", *listen)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	switch *kind {
	case kindFloor:
		return fasthttp.Serve(ln, floorHandler([]byte(*key), bodies))
	case kindConstant:
		return fasthttp.Serve(ln, func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType(answerType)
			ctx.Response.SetBodyRaw(bodies[0])
		})
	case kindNetHTTP:
		return http.Serve(ln, netHTTPHandler(*key, bodies))
	}
	return errors.New("floor: there is no baseline " + *kind)
}

const answerType = "application/json; charset=utf-8"

func netHTTPHandler(key string, bodies [][]byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/platform/projects/resolve", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-PLATFORM-KEY") != key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		n := projectNumber([]byte(r.URL.Query().Get("domain")))
		if n < 0 || n >= len(bodies) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", answerType)
		w.Header().Set("Content-Length", strconv.Itoa(len(bodies[n])))
		_, _ = w.Write(bodies[n]) // fails only if the client has gone
	})
	return mux
}

func floorHandler(key []byte, bodies [][]byte) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !bytes.Equal(ctx.Request.Header.Peek("X-PLATFORM-KEY"), key) {
			ctx.SetStatusCode(fasthttp.StatusUnauthorized)
			return
		}
		n := projectNumber(ctx.QueryArgs().Peek("domain"))
		if n < 0 || n >= len(bodies) {
			ctx.SetStatusCode(fasthttp.StatusNotFound)
			return
		}
		ctx.SetContentType(answerType)
		ctx.Response.SetBodyRaw(bodies[n])
	}
}

// floorAnswers makes a body of size bytes for each project. It begins like fingerpost's, so that judging the answers
// costs the same for both.
func floorAnswers(p corpusParams, size int) [][]byte {
	slugs := makeSlugs(p)
	bodies := make([][]byte, p.Projects)
	for i := range bodies {
		head := `{"success":true,"message":"domain resolved","data":{"project":{"id":211106232532992,` +
			`"uuid":"01234567-89ab-cdef-0123-456789abcdef","name":"` + slugs[i] + `","slug":"` + slugs[i] + `","padding":"`
		const tail = `"}},"timestamp":"2026-01-31T09:30:00.123456"}`
		pad := max(0, size-len(head)-len(tail))
		bodies[i] = []byte(head + strings.Repeat("x", pad) + tail)
	}
	return bodies
}
