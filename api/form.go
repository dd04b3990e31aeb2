package api

import "fingerpost/api/web"

// A form is a web.Form with the readings that only handlers need.
type form struct{ *web.Form }

// readForm reads the body. fields are those that the call takes; readOnly are further fields of answers, next to those
// that all have.
func (r *request) readForm(fields []string, readOnly ...string) (*form, error) {
	body, problems, err := r.readBody(fields, append(readOnly, web.ReadOnlyFields...))
	if err != nil {
		return nil, err
	}
	return &form{web.NewForm(body, problems)}, nil
}

// again returns a copy for reading the body into another noun, with the problems found so far.
func (f *form) again() *form { return &form{f.Again()} }
