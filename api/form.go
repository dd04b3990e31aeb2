package api

import "fingerpost/api/web"

// A form is a web.Form with the readings that only handlers need.
type form struct{ *web.Form }

// readForm reads the body of a request, as web.Request.ReadForm does.
func readForm(r *web.Request, fields []string, readOnly ...string) (*form, error) {
	f, err := r.ReadForm(fields, readOnly...)
	if err != nil {
		return nil, err
	}
	return &form{f}, nil
}
