package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/valyala/fasthttp"
)

// floorCommand is the hidden sub-command as which bench runs itself to be the floor.
const floorCommand = "floor"

const floorGreeting = "floor listening on http://"

// runFloor serves the least that this work can be done with: read the key header, read the query argument, write one
// of many ready bodies. It prints its address and ends with its standard input, so that it does not outlive the bench.
func runFloor(args []string, stdin io.Reader, stdout io.Writer) error {
	var p corpusParams
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	key := flags.String("key", "", "the key")
	size := flags.Int("size", 977, "size of a body in bytes")
	flags.IntVar(&p.Projects, "projects", 100_000, "projects, and so bodies")
	flags.Uint64Var(&p.Seed, "seed", 1, "seed of the corpus")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	server := &fasthttp.Server{Handler: floorHandler([]byte(*key), floorAnswers(p, *size))}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = server.Shutdown() // Serve below says what is to be said
	}()
	fmt.Fprintf(stdout, "%s%s\n", floorGreeting, ln.Addr())
	return server.Serve(ln)
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

// floorAnswers makes a body of size bytes for each project. It begins as fingerpost's do, so that who judges the answers
// has the same work with both.
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
