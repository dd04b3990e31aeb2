package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// cacheCounts is fingerpost_resolve_cache_total, by result.
type cacheCounts map[string]float64

const cacheMetric = `fingerpost_resolve_cache_total{result="`

// readCacheCounts reads the counters from a Prometheus text.
func readCacheCounts(r io.Reader) (cacheCounts, error) {
	counts := cacheCounts{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), cacheMetric)
		if !ok {
			continue
		}
		result, value, ok := strings.Cut(rest, `"} `)
		n, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("read metrics: unexpected line %q", lines.Text())
		}
		counts[result] = n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return counts, nil
}

// since returns how much the counters grew.
func (c cacheCounts) since(earlier cacheCounts) cacheCounts {
	grown := cacheCounts{}
	for result, n := range c {
		grown[result] = n - earlier[result]
	}
	return grown
}

// hitShare is the part of lookups that the cache answered.
func (c cacheCounts) hitShare() float64 {
	total := 0.0
	for _, n := range c {
		total += n
	}
	if total == 0 {
		return 0
	}
	return c["hit"] / total
}

func fetch(url string) (*http.Response, error) {
	c := http.Client{Timeout: clientTimeout}
	return c.Get(url)
}

// cache reads the server's counters.
func (s *server) cache() (cacheCounts, error) {
	res, err := fetch(s.ops + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: status %d", res.StatusCode)
	}
	counts, err := readCacheCounts(res.Body)
	if err == nil && len(counts) == 0 {
		err = fmt.Errorf("read metrics: there is no %s…", cacheMetric)
	}
	return counts, err
}
