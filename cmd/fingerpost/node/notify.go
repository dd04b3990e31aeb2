package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"fingerpost/api/conditions"
	"fingerpost/resolver/catalog"
)

// tellEvery is how often systemd is told how the node is, and how often that is found out; half of the unit's WatchdogSec
// if that is shorter.
const tellEvery = 5 * time.Second

// A manager is the service manager that started the node, as sd_notify(3) has it: systemd with Type=notify, which sets
// NOTIFY_SOCKET. Without one, nothing is told. Every method may be called from any goroutine.
type manager struct {
	ready  atomic.Bool
	ends   time.Time                              // of the grace period; zero before it has begun
	judged atomic.Pointer[[]conditions.Condition] // the latest; nil before the first
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
		n.tellReady()
	}
}

// tellReady tells the manager that a start or a reload has ended.
func (n *service) tellReady() {
	n.manager.tell(daemon.SdNotifyReady, n.statusLine())
}

// statusLine is what "systemctl status" shows of the node.
func (n *service) statusLine() string {
	switch {
	case !n.manager.ready.Load() && n.cluster.isEdge():
		return "STATUS=waits for a whole tree from the authority"
	case !n.manager.ready.Load():
		return "STATUS=reads the files"
	}
	st := n.source.Status()
	line := fmt.Sprintf("STATUS=generation %d: %s, %s", st.Generation, catalog.Count(st.Projects, "project"),
		catalog.Count(st.Domains, "domain"))
	if list := n.manager.judged.Load(); list != nil {
		line += worst(*list)
	}
	return line
}

// worst is the first of the conditions that say that something does not work, and how many more there are.
func worst(list []conditions.Condition) (text string) {
	more := 0
	for i := range list {
		switch c := &list[i]; {
		case !conditions.KindOf(c.ID).Broken:
		case text == "":
			text = "; " + c.Clause()
		default:
			more++
		}
	}
	if more > 0 {
		text += ", and " + catalog.Count(more, "more problem")
	}
	return text
}

// logChanges logs which conditions have begun and ended since logged, and returns those of now. What has failed has said
// why in the log itself, and as a warning: these lines are for those who follow conditions.
func (n *service) logChanges(logged map[string]bool, list []conditions.Condition) map[string]bool {
	present := map[string]bool{}
	for i := range list {
		c := &list[i]
		key := catalog.ConditionObject(c.ID, c.Subject)
		if !logged[key] && !present[key] {
			n.o.Logger.Info("condition", "condition", key, "severity", c.Severity, "sentence", c.Sentence, "guide", c.Guide)
		}
		present[key] = true
	}
	for key := range logged {
		if !present[key] {
			n.o.Logger.Info("condition ended", "condition", key)
		}
	}
	return present
}

// judge finds the conditions until ctx ends. It logs how they change once the node is ready, and tells the audit trail, which
// does not tell of what belongs to the start and the end of a node. keepTold does not wait for it: a disk that hangs must
// not look like a process that hangs.
func (n *service) judge(ctx context.Context) {
	tick := time.NewTicker(tellPeriod())
	defer tick.Stop()
	logged, trail := map[string]bool{}, n.newConditionTrail()
	for {
		state := n.ops.State()
		list := conditions.Of(state)
		n.manager.judged.Store(&list)
		if n.manager.ready.Load() {
			logged = n.logChanges(logged, list)
		}
		if trail != nil && !state.NotReady {
			trail.look(state.Time, list)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellPeriod is tellEvery, or half of the unit's WatchdogSec.
func tellPeriod() time.Duration {
	if watchdog, err := daemon.SdWatchdogEnabled(false); err == nil && watchdog > 0 {
		return min(tellEvery, watchdog/2)
	}
	return tellEvery
}

// keepTold tells the manager until ctx ends that the node lives, and while it is not ready yet, that it needs more time.
func (n *service) keepTold(ctx context.Context) {
	every := tellPeriod()
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
