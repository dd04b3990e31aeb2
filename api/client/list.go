package client

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
)

// pageSize is the most that the API allows.
const pageSize = 100

// list reads a whole list, page by page if the server has pages. It starts again if the list changes between two pages.
func (c *Client) list(ctx context.Context, path string) (rows []row, err error) {
	const rounds = 3
	for range rounds {
		var whole bool
		if rows, whole, err = c.pages(ctx, path); err != nil || whole {
			return rows, err
		}
	}
	return nil, fmt.Errorf("GET %s: the list changed while it was read, %d times: try again", path, rounds)
}

// pages reads all pages once. whole is false if the list has changed between two pages.
func (c *Client) pages(ctx context.Context, path string) (all []row, whole bool, err error) {
	seen, total := map[string]bool{}, -1
	for page := 1; ; page++ {
		var rows []row
		meta, err := c.platform.call(ctx, http.MethodGet, fmt.Sprintf("%s?page=%d&limit=%d", path, page, pageSize), nil,
			&rows)
		if page == 1 && Status(err, http.StatusBadRequest) { // a server without paging may refuse to be asked for it
			rows = nil
			meta, err = c.platform.call(ctx, http.MethodGet, path, nil, &rows)
		}
		if err != nil {
			return nil, false, err
		}
		for _, x := range rows {
			if id := string(x["id"]); !seen[id] {
				seen[id] = true
				all = append(all, x)
			}
		}
		if meta == nil {
			return all, true, nil
		}
		if total >= 0 && meta.Total != total { // a row that moved across the edge of a page may be on neither
			return nil, false, nil
		}
		if total = meta.Total; page >= meta.TotalPages || len(rows) == 0 {
			return all, len(all) == total, nil
		}
	}
}

// A Page is one page of a list.
type Page[Row any] struct {
	Rows         []Row
	Total, Pages int // rows and pages of the whole list

	// SearchedTo is the time to which Mail has looked, "" if it has looked at all mail.
	SearchedTo string
}

// readPage reads one page of a list. filters are those of the query, "page" and "limit" among them; an empty one is
// left out.
func readPage[Row any](ctx context.Context, s *service, path string, filters url.Values) (p Page[Row], err error) {
	filters = maps.Clone(filters)
	maps.DeleteFunc(filters, func(_ string, v []string) bool { return len(v) == 0 || v[0] == "" })
	meta, err := s.call(ctx, http.MethodGet, path+"?"+filters.Encode(), nil, &p.Rows)
	if err == nil && meta != nil {
		p.Total, p.Pages = meta.Total, meta.TotalPages
		if meta.SearchedTo != nil {
			p.SearchedTo = *meta.SearchedTo
		}
	}
	return p, err
}

// rowPage is readPage for rows that become nouns.
func rowPage[T any](ctx context.Context, s *service, path string, filters url.Values,
	read func(row) (T, error)) (p Page[T], err error) {
	rows, err := readPage[row](ctx, s, path, filters)
	if err == nil {
		p.Total, p.Pages = rows.Total, rows.Pages
		p.Rows, err = eachRow(rows.Rows, read)
	}
	return p, err
}

// InOrder calls get for 0 … n-1, up to parallel at once, and calls use with each result, one after the other and in
// order. It holds only a few results more than are being fetched, and stops at the first error.
func InOrder[T any](ctx context.Context, parallel, n int, get func(ctx context.Context, i int) (T, error),
	use func(i int, v T) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		v   T
		err error
	}
	slots := make(chan chan result, parallel)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		defer close(slots)
		for i := range n {
			slot := make(chan result, 1)
			select {
			case slots <- slot:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				v, err := get(ctx, i)
				slot <- result{v, err}
			})
		}
	})
	i := 0
	for slot := range slots {
		r := <-slot
		if r.err != nil {
			return r.err
		}
		if err := use(i, r.v); err != nil {
			return err
		}
		i++
	}
	return ctx.Err()
}
