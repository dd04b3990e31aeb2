package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// unverified makes the service check every domain of a corpus, and answer all of them meanwhile.
const unverified = `defaults {
  verification {
    require = "project-keys"
    targets = ["192.0.2.0/24"]
  }
}
`

// A noResolver is a resolver of names that knows none, and counts the questions.
type noResolver struct {
	conn  net.PacketConn
	asked atomic.Int64
}

// serve answers until the connection is closed.
func (r *noResolver) serve() {
	b := make([]byte, 4096)
	for {
		n, peer, err := r.conn.ReadFrom(b)
		if err != nil {
			return
		}
		if n >= 12 { // the question is the answer, with the bits QR and RA, and NXDOMAIN
			r.asked.Add(1)
			b[2], b[3] = b[2]|0x80, 0x83
			_, _ = r.conn.WriteTo(b[:n], peer)
		}
	}
}

// runDomains compares resolve hits of a server that checks all of its domains with those of one that checks none.
func runDomains(ctx context.Context, b *bench) (*report, error) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b.atEnd(conn.Close)
	names := &noResolver{conn: conn}
	go names.serve()
	var full, half []*turn
	var sides []*side
	var with *corpus
	for _, name := range []string{"checking", "without"} {
		c, err := b.openEdited("domains-" + name + "-")
		if err == nil && name == "checking" {
			with = c
			err = os.WriteFile(filepath.Join(c.config, "verification.hcl"), []byte(unverified), 0o600)
		}
		if err == nil {
			err = b.clearStore("domains-" + name)
		}
		if err != nil {
			return nil, err
		}
		s, err := b.fingerpost(ctx, "domains-"+name, c.config, "--dns-resolver", conn.LocalAddr().String())
		if err == nil {
			err = b.fill(ctx, s, c, c.names())
		}
		if err != nil {
			return nil, err
		}
		one := resolves(s, c, c.zipf())
		one.name = name
		sides, full = append(sides, one), append(full, b.fullSpeed(one))
	}
	asked, began := names.asked.Load(), time.Now()
	if err := b.alternate(ctx, full...); err != nil {
		return nil, err
	}
	rate := full[1].median(perSecond) / 2
	for _, one := range sides {
		half = append(half, b.turn(one.name, load{side: one, workers: b.connections, rate: rate}))
	}
	if err := b.alternate(ctx, half...); err != nil {
		return nil, err
	}
	questions := float64(names.asked.Load()-asked) / time.Since(began).Seconds()
	if questions == 0 {
		return nil, fmt.Errorf("no domain was checked")
	}
	rep := &report{Parameters: b.parameters(with, nil)}
	rep.add(paired("a resolve hit while all domains are under check: CPU of the server", "µs/request",
		full[0].figures[cpuEach], full[1].figures[cpuEach]),
		full[0].against(full[1], perSecond, "resolve", "requests/s"))
	rep.add(half[0].tails(half[1], "latency at a constant rate,")...)
	rep.add(measured("questions to name servers", "1/s", questions))
	rep.note("Latencies at %.0f requests a second at random moments, on %d connections. The baseline checks no domain.",
		rate, b.connections)
	return rep, nil
}
