package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/valyala/fasthttp"
)

// floorCommand is the hidden sub-command with which bench runs itself as the floor: a fasthttp server that does the
// least that a hit needs. It reads the key header and the query argument, and writes one of many ready bodies.
const floorCommand = "floor"

// floor starts this program itself as the floor, with bodies of a size.
func (b *bench) floor(ctx context.Context, c *corpus, size int) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the floor: %w", err)
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{name: floorCommand, addr: addr}
	cmd := exec.Command(self, floorCommand, "-listen", addr, "-key", c.key, "-size", fmt.Sprint(size),
		"-projects", fmt.Sprint(c.Projects))
	return s, b.start(ctx, s, cmd, func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// runFloor serves the floor until ctx ends.
func runFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "the address")
	key := flags.String("key", "", "the key")
	size := flags.Int("size", 977, "size of a body in bytes")
	projects := flags.Int("projects", 100_000, "projects, and so bodies")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	bodies := floorAnswers(*projects, *size)
	ln, err := net.Listen("tcp4", *listen)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	return fasthttp.Serve(ln, floorHandler([]byte(*key), bodies))
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
		ctx.SetContentType("application/json; charset=utf-8")
		ctx.Response.SetBodyRaw(bodies[n])
	}
}

// floorAnswers makes a body of size bytes for each project. It begins like fingerpost's, so that judging the answers
// costs the same for both.
func floorAnswers(projects, size int) [][]byte {
	slugs := makeSlugs(projects)
	bodies := make([][]byte, projects)
	for i := range bodies {
		head := `{"success":true,"message":"domain resolved","data":{"project":{"id":52776558133248,` +
			`"uuid":"01234567-89ab-cdef-0123-456789abcdef","name":"` + slugs[i] + `","slug":"` + slugs[i] + `","padding":"`
		const tail = `"}},"timestamp":"2026-01-31T09:30:00.123456"}`
		pad := max(0, size-len(head)-len(tail))
		bodies[i] = []byte(head + strings.Repeat("x", pad) + tail)
	}
	return bodies
}
