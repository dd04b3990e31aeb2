package share

import (
	"slices"
	"time"
)

// A Waiter is a tenant that waits.
type Waiter struct {
	Tenant string
	Count  int       // of its calls that wait
	Since  time.Time // when the first of them began to wait
}

// A call is one that waits. served is closed when it is its turn.
type call struct {
	tenant string
	since  time.Time
	served chan struct{}
}

// rounds is a queue that serves tenants in rounds. Every tenant in order has calls.
type rounds struct {
	order []string // the tenants that wait; the first one is next
	calls map[string][]*call
}

// add queues a call of a tenant, which joins the end of the round if it does not wait yet.
func (r *rounds) add(tenant string) *call {
	c := &call{tenant, time.Now(), make(chan struct{})}
	if r.calls == nil {
		r.calls = map[string][]*call{}
	}
	if len(r.calls[tenant]) == 0 {
		r.order = append(r.order, tenant)
	}
	r.calls[tenant] = append(r.calls[tenant], c)
	return c
}

// remove takes out a call that waits no longer. It reports whether the call was still waiting.
func (r *rounds) remove(c *call) bool {
	calls := r.calls[c.tenant]
	i := slices.Index(calls, c)
	if i < 0 {
		return false
	}
	if calls = slices.Delete(calls, i, i+1); len(calls) > 0 {
		r.calls[c.tenant] = calls
		return true
	}
	delete(r.calls, c.tenant)
	r.order = slices.DeleteFunc(r.order, func(tenant string) bool { return tenant == c.tenant })
	return true
}

// serve removes the first call of the next tenant that may be served, and puts the tenant at the end of the round; nil
// if there is none.
func (r *rounds) serve(may func(tenant string) bool) *call {
	i := slices.IndexFunc(r.order, may)
	if i < 0 {
		return nil
	}
	tenant := r.order[i]
	c := r.calls[tenant][0]
	r.remove(c)
	if len(r.calls[tenant]) > 0 {
		r.order = append(slices.Delete(r.order, i, i+1), tenant)
	}
	return c
}

// others reports whether a tenant other than this one waits.
func (r *rounds) others(tenant string) bool {
	return len(r.order) > 1 || len(r.order) == 1 && r.order[0] != tenant
}

func (r *rounds) waiting() []Waiter {
	all := make([]Waiter, len(r.order))
	for i, tenant := range r.order {
		calls := r.calls[tenant]
		all[i] = Waiter{tenant, len(calls), calls[0].since}
	}
	return all
}
