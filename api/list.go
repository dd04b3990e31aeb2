package api

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

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
	sort  string
	desc  bool
}

// query returns the resolver's form of a paging. projects are the ids that a key is bound to, nil for every project.
func (p paging) query(projects []int64) resolver.Query {
	q := resolver.Query{Sort: p.sort, Desc: p.desc, IDs: projects}
	if p.paged {
		q.Page, q.Limit = p.page, p.limit
	}
	return q
}

// parsePaging reads page, limit, sort and order. It reports every problem, after the earlier ones of the path.
func parsePaging(raw []byte, fields []string, earlier ...error) (paging, error) {
	q := parseQuery(raw, "page", "limit", "sort", "order")
	p := paging{page: 1, limit: defaultPageSize, sort: "id"}
	problems := pathProblems(earlier...)
	number := func(name string, high int, into *int) {
		text, given := q.values[name]
		if !given {
			return
		}
		p.paged = true
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > high || text[0] == '+' {
			problems.Addf(name, "must be a whole number from 1 to %d", high)
			return
		}
		*into = n
	}
	number("page", maxPage, &p.page)
	number("limit", maxPageSize, &p.limit)
	if sort, given := q.values["sort"]; given {
		if p.sort = sort; !slices.Contains(fields, sort) {
			problems.Addf("sort", "must be one of %s", strings.Join(fields, ", "))
		}
	}
	if order, given := q.values["order"]; given {
		if p.desc = order == "desc"; order != "asc" && order != "desc" {
			problems.Addf("order", "must be asc or desc")
		}
	}
	if problems = append(problems, q.problems...); len(problems) > 0 {
		return p, invalid(problems...)
	}
	return p, nil
}

// pathProblems collects the problems of path parameters.
func pathProblems(failures ...error) (ps catalog.Problems) {
	for _, err := range failures {
		var e *catalog.Error
		if errors.As(err, &e) {
			ps = append(ps, e.Problems...)
		}
	}
	return ps
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
	_, idErr := r.id(param)
	page, err := parsePaging(r.ctx.URI().QueryString(), fields, idErr)
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
	if !p.paged {
		s.succeed(ctx, message, data)
		return
	}
	ctx.Response.Header.SetContentTypeBytes(contentJSON)
	body := beginSuccess(make([]byte, 0, len(data)+256), message)
	body = append(body, data...)
	body = strconv.AppendInt(append(body, `,"meta":{"total":`...), int64(total), 10)
	body = strconv.AppendInt(append(body, `,"page":`...), int64(p.page), 10)
	body = strconv.AppendInt(append(body, `,"limit":`...), int64(p.limit), 10)
	body = strconv.AppendInt(append(body, `,"totalPages":`...), int64((total+p.limit-1)/p.limit), 10)
	ctx.Response.SetBodyRaw(s.endEnvelope(append(body, '}'), time.Now()))
}
