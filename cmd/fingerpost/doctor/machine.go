package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fingerpost/cmd/fingerpost/node"
	"fingerpost/resolver"
)

// store checks that no other process has the data folder, or says what the running server does.
func (p *patient) store(context.Context) []Result {
	const free = "end that process, or give another folder with --data"
	switch {
	case p.running != nil:
		return p.withTold("store", ok("the running server has %s, with store format %d and ledger format %d", p.Files.Data,
			p.running.Formats.Store, p.running.Formats.Ledger))
	case p.lockErr != nil:
		return []Result{failure("let this user read the data folder, or run this as the service's user",
			"whether a process has the store is not known: %v", p.lockErr)}
	case p.holder != nil:
		return []Result{failure(free, "%v", p.holder)}
	}
	return []Result{ok("no process has %s; this release has store format %d and ledger format %d", p.Files.Data,
		resolver.StoreFormat, resolver.LedgerFormat)}
}

// disk compares the free space with what serve keeps free.
func (p *patient) disk(context.Context) []Result {
	dir, _ := filepath.Abs(p.Files.Data)
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if low := node.LowDisk(dir); low != "" {
		return p.withTold("disk", failure("make room, or move the data folder (--data) to a larger disk",
			"too little room for mail at %s: %s", dir, low))
	}
	return p.withTold("disk", ok("enough room at %s", dir))
}

// openFiles compares the limit on descriptors with what serve can use.
func (p *patient) openFiles(context.Context) []Result {
	conns, limit := node.MaxConns()
	switch {
	case limit == 0:
		return []Result{warning(`look at "ulimit -n"`, "the limit is not known")}
	case limit < node.WantedDescriptors:
		return []Result{warning(fmt.Sprintf("allow %d: LimitNOFILE= in a systemd unit, \"ulimit -n\" in a shell",
			node.WantedDescriptors), "this process may open %d: serve takes %d connections at most", limit, conns)}
	}
	return []Result{ok("this process may open %d", limit)}
}

// backwards is how far the clock may be behind what it has said before.
const backwards = time.Minute

// clock looks for signs of a clock that was set back: a commit, or a file of the store, of the future.
func (p *patient) clock(context.Context) []Result {
	now := time.Now()
	const set = "set the clock, and keep it right with NTP: \"timedatectl set-ntp true\""
	if now.Before(p.Built) {
		return []Result{failure(set, "it is %s here, and this program is of %s", date(now), date(p.Built))}
	}
	for _, dir := range []string{p.Files.Data, filepath.Join(p.Files.Data, "ledger")} {
		names, _ := os.ReadDir(dir)
		for _, e := range names {
			if info, err := e.Info(); err == nil && info.ModTime().Sub(now) > backwards {
				return []Result{failure(set, "it is %s here, and %s was written at %s: the clock was set back", date(now),
					filepath.Join(dir, e.Name()), date(info.ModTime()))}
			}
		}
	}
	return []Result{ok("it is %s", date(now))}
}

// listeners tries the addresses, unless the running server has them.
func (p *patient) listeners(context.Context) (rs []Result) {
	if p.running != nil {
		return []Result{ok("the running server has its addresses")}
	}
	for _, err := range p.TryAddresses() {
		rs = append(rs, failure("make the address free, or give another one with that flag", "%v", err))
	}
	if rs == nil {
		rs = []Result{ok("the addresses can be listened on")}
	}
	return rs
}
