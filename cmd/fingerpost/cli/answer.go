package cli

import (
	"net/http"
	"net/url"
	"strconv"

	"fingerpost/api/client"
)

// Answered gives a server's refusal of a call its exit code: what the server does not have, or cannot do in its present
// state, is a no; a request that is wrong is wrong usage.
func Answered(err error) error {
	switch {
	case client.Status(err, http.StatusNotFound, http.StatusConflict):
		return No("%v", err)
	case client.Status(err, http.StatusBadRequest):
		return Usage("%v", err)
	}
	return err
}

// FirstRows reads pages of a list, with filters, until it has enough rows, and returns how many the list has. A row that
// comes meanwhile moves others to the next page: id tells rows apart, so that none is there twice.
func FirstRows[T any](filters url.Values, enough int, id func(*T) string,
	read func(filters url.Values) (client.Page[T], error)) (rows []T, total int, err error) {
	seen := map[string]bool{}
	filters.Set("limit", strconv.Itoa(min(enough, client.MaxLogPage)))
	for n := 1; len(rows) < enough; n++ {
		filters.Set("page", strconv.Itoa(n))
		page, err := read(filters)
		if err != nil {
			return nil, 0, err
		}
		for i := range page.Rows {
			if r := &page.Rows[i]; !seen[id(r)] && len(rows) < enough {
				seen[id(r)] = true
				rows = append(rows, *r)
			}
		}
		if total = page.Total; n >= page.Pages || len(page.Rows) == 0 {
			break
		}
	}
	return rows, total, nil
}
