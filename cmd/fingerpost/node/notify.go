package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"fingerpost/resolver/catalog"
)

// tellEvery is how often systemd is told how the node is, or half of the unit's WatchdogSec if that is shorter.
const tellEvery = 5 * time.Second

// A manager is the service manager that started the node, as sd_notify(3) has it: systemd with Type=notify, which sets
// NOTIFY_SOCKET. Without one, nothing is told. Every method may be called from any goroutine.
type manager struct {
	ready atomic.Bool
	ends  time.Time // of the grace period; zero before it has begun
}

// tell sends lines of assignments. That systemd does not hear them has no consequence that the node could avoid.
func (*manager) tell(lines ...string) {
	_, _ = daemon.SdNotify(false, strings.Join(lines, "\n"))
}

// setReady decides what /readyz answers, and tells the manager so. A node that was ready once stays so for systemd.
func (n *service) setReady(ready bool) {
	n.ops.SetReady(ready)
	if ready {
		n.manager.ready.Store(true)
		n.manager.tell(daemon.SdNotifyReady, n.statusLine())
	}
}

// statusLine is what "systemctl status" shows of the node.
func (n *service) statusLine() string {
	st := n.source.Status()
	line := fmt.Sprintf("STATUS=generation %d: %s, %s", st.Generation, catalog.Count(st.Projects, "project"),
		catalog.Count(st.Domains, "domain"))
	switch {
	case !n.manager.ready.Load() && n.cluster.isEdge():
		line = "STATUS=waits for a whole tree from the authority"
	case !n.manager.ready.Load():
		line = "STATUS=reads the files"
	case st.Held != nil:
		line += "; a reload is held back"
	case st.Errors > 0:
		line += "; " + catalog.Count(st.Errors, "error")
	}
	return line
}

// keepTold tells the manager until ctx ends that the node lives, and while it is not ready yet, that it needs more time.
func (n *service) keepTold(ctx context.Context) {
	every := tellEvery
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err == nil && watchdog > 0 {
		every = min(every, watchdog/2)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		lines := []string{n.statusLine(), daemon.SdNotifyWatchdog}
		if !n.manager.ready.Load() {
			lines = append(lines, moreTime(4*every))
		}
		n.manager.tell(lines...)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// moreTime asks the manager to wait for d more before it calls the start or the end failed.
func moreTime(d time.Duration) string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()) }
