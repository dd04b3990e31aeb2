package tenant

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	maxBatch   = 1000
	batchLimit = 30 * time.Second
)

// warm asks about the names of Options.Warm until the server has answered.
func (c *Cache) warm() {
	select {
	case <-c.tried: // what is asked before the feed is open has to be confirmed
	case <-c.ctx.Done():
		return
	}
	names := make([]string, 0, len(c.o.Warm))
	for _, host := range c.o.Warm {
		name, err := canonical(host)
		if err != nil {
			c.log(c.o.Logger.Warn, "a name to warm is left out", "host", host, "cause", err)
			continue
		}
		names = append(names, name)
	}
	for failures := 0; len(names) > 0; {
		n := min(len(names), maxBatch)
		f := c.batch(names[:n])
		if f == nil {
			names, failures = names[n:], 0
			continue
		}
		failures++
		if !c.sleep(backoff(failures, f.retryAfter)) {
			return
		}
	}
	c.mu.Lock()
	c.is.warm = true
	c.mu.Unlock()
	c.checkReady()
}

// batch asks about names in one request.
func (c *Cache) batch(names []string) *failure {
	var qs []*question
	var domains []string
	c.mu.Lock()
	for _, name := range names {
		if c.asking[name] == nil && c.judge(c.entries.of(name), c.clock.Now()) != good {
			qs = append(qs, c.pose(name, nil))
			domains = append(domains, name)
		}
	}
	c.mu.Unlock()
	if len(qs) == 0 {
		return nil
	}
	rows, f := c.resolveAll(qs, domains)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f != nil {
		c.failed(f, qs[0].rounds)
	} else {
		c.succeeded()
	}
	for i, q := range qs {
		if f != nil {
			c.settle(q, nil, f)
			continue
		}
		r, failure := replyOf(rows[i].Status, rows[i].Code, rows[i].Result, rows[i].ETag)
		c.settle(q, r, failure)
	}
	return f
}

// A batchRow is the answer to one name of a batch.
type batchRow struct {
	Status int
	Code   string
	ETag   string
	Result json.RawMessage
}

func (c *Cache) resolveAll(qs []*question, domains []string) (rows []batchRow, f *failure) {
	body, err := json.Marshal(map[string]any{"domains": domains})
	if err != nil {
		return nil, &failure{cause: err}
	}
	ctx, stop := c.within(batchLimit)
	defer stop()
	a, f := c.exchange(ctx, qs, resolvePath, http.Header{"Content-Type": {"application/json"}}, body)
	if f != nil {
		return nil, f
	}
	if a.status != http.StatusOK {
		return nil, failed("the server answers %d to a batch", a.status)
	}
	if err := json.Unmarshal(a.data, &rows); err != nil || len(rows) != len(domains) {
		return nil, failed("the answer to a batch of %d names is not of this API", len(domains))
	}
	return rows, nil
}
