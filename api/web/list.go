package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The paging of lists.
const (
	defaultPageSize = 10
	maxPageSize     = 100
	maxPage         = 1 << 31 // beyond it a page's offset might not fit
)

// PagingParams are the parameters that ParsePaging reads.
var PagingParams = []string{"page", "limit", "sort", "order"}

// A Paging is what a list request asks for.
type Paging struct {
	Paged bool // page or limit is given, so the answer has meta
	Page  int
	Limit int
	Sort  string // "": by id
	Order string // "asc", "desc", or "" if none is given
}

// Query returns the resolver's form of a paging. projects are the ids that a key is bound to, nil for every project.
func (p Paging) Query(projects []int64) resolver.Query {
	q := resolver.Query{Sort: p.Sort, Desc: p.Order == "desc", IDs: projects}
	if p.Paged {
		q.Page, q.Limit = p.Page, p.Limit
	}
	return q
}

// ParsePaging reads page, limit, sort and order. It reports every problem, after those that were found before.
func ParsePaging(raw []byte, fields []string, problems catalog.Problems) (Paging, error) {
	q := ParseQuery(raw, PagingParams...)
	p := Paging{Page: 1, Limit: defaultPageSize, Sort: q.Values["sort"], Order: q.Values["order"]}
	number := func(name string, high int, into *int) {
		text, given := q.Values[name]
		if !given {
			return
		}
		p.Paged = true
		n, err := strconv.ParseUint(text, 10, 32)
		if *into = int(n); err != nil || n < 1 || *into > high {
			problems.Addf(name, "must be a whole number from 1 to %d", high)
		}
	}
	number("page", maxPage, &p.Page)
	number("limit", maxPageSize, &p.Limit)
	if _, given := q.Values["sort"]; given && !slices.Contains(fields, p.Sort) {
		problems.Addf("sort", "must be one of %s", strings.Join(fields, ", "))
	}
	if _, given := q.Values["order"]; given && p.Order != "asc" && p.Order != "desc" {
		problems.Addf("order", "must be asc or desc")
	}
	if problems = append(problems, q.Problems...); len(problems) > 0 {
		return p, Invalid(problems...)
	}
	return p, nil
}

// AppendRows returns the JSON of a list.
func AppendRows[Row any](rows []*Row, appendRow func([]byte, *Row) []byte) []byte {
	data := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			data = append(data, ',')
		}
		data = appendRow(data, row)
	}
	return append(data, ']')
}

// AppendMeta appends the meta of a list of total rows, if the request names a page.
func (p Paging) AppendMeta(data []byte, total int) []byte {
	if !p.Paged {
		return data
	}
	return fmt.Appendf(data, `,"meta":{"total":%d,"page":%d,"limit":%d,"totalPages":%d}`, total, p.Page, p.Limit,
		(total+p.Limit-1)/p.Limit)
}

// SucceedPage answers with a list, and with meta if the request names a page. data is the JSON of the list.
func (r *Request) SucceedPage(message string, data []byte, p Paging, total int) {
	r.Succeed(message, p.AppendMeta(data, total))
}
