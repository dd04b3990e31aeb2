package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The paging of lists.
const (
	defaultPageSize = 10
	maxPageSize     = 100
	maxPage         = 1 << 31 // beyond it a page's offset might not fit
)

// A paging is what a list request asks for.
type paging struct {
	paged bool // page or limit is given, so the answer has meta
	page  int
	limit int
	sort  string // "": by id
	order string // "asc", "desc", or "" if none is given
}

// query returns the resolver's form of a paging. projects are the ids that a key is bound to, nil for every project.
func (p paging) query(projects []int64) resolver.Query {
	q := resolver.Query{Sort: p.sort, Desc: p.order == "desc", IDs: projects}
	if p.paged {
		q.Page, q.Limit = p.page, p.limit
	}
	return q
}

// parsePaging reads page, limit, sort and order. It reports every problem, after those that were found before.
func parsePaging(raw []byte, fields []string, problems catalog.Problems) (paging, error) {
	q := parseQuery(raw, "page", "limit", "sort", "order")
	p := paging{page: 1, limit: defaultPageSize, sort: q.values["sort"], order: q.values["order"]}
	number := func(name string, high int, into *int) {
		text, given := q.values[name]
		if !given {
			return
		}
		p.paged = true
		n, err := strconv.ParseUint(text, 10, 32)
		if *into = int(n); err != nil || n < 1 || *into > high {
			problems.Addf(name, "must be a whole number from 1 to %d", high)
		}
	}
	number("page", maxPage, &p.page)
	number("limit", maxPageSize, &p.limit)
	if _, given := q.values["sort"]; given && !slices.Contains(fields, p.sort) {
		problems.Addf("sort", "must be one of %s", strings.Join(fields, ", "))
	}
	if _, given := q.values["order"]; given && p.order != "asc" && p.order != "desc" {
		problems.Addf("order", "must be asc or desc")
	}
	if problems = append(problems, q.problems...); len(problems) > 0 {
		return p, invalid(problems...)
	}
	return p, nil
}

// appendRows returns the JSON of a list.
func appendRows[Row any](rows []*Row, appendRow func([]byte, *Row) []byte) []byte {
	data := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			data = append(data, ',')
		}
		data = appendRow(data, row)
	}
	return append(data, ']')
}

// listOwned answers with a list of what belongs to the project that the path parameter names. fields sort the list.
func listOwned[Row any](s *Server, r *request, param string, fields []string, message string,
	read func(project int64, q resolver.Query) ([]*Row, int, error), appendRow func([]byte, *Row) []byte) error {
	_, bad := r.id(param)
	page, err := parsePaging(r.ctx.URI().QueryString(), fields, bad)
	if err != nil {
		return err
	}
	project, err := s.projectOf(r, param)
	if err != nil {
		return err
	}
	rows, total, err := read(project.ID, page.query(nil))
	if err != nil {
		return err
	}
	s.succeedPage(r.ctx, message, appendRows(rows, appendRow), page, total)
	return nil
}

// succeedPage answers with a list, and with meta if the request names a page. data is the JSON of the list.
func (s *Server) succeedPage(ctx *fasthttp.RequestCtx, message string, data []byte, p paging, total int) {
	if p.paged {
		data = fmt.Appendf(data, `,"meta":{"total":%d,"page":%d,"limit":%d,"totalPages":%d}`, total, p.page, p.limit,
			(total+p.limit-1)/p.limit)
	}
	s.succeed(ctx, message, data)
}
