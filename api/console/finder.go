package console

import (
	"net/http"
	"strings"

	"fingerpost/api/client"
)

// maxFound is how many projects the finder of a form shows.
const maxFound = 8

// A foundView is what the finder of a form shows.
type foundView struct {
	Query, Problem string
	Rows           []client.ProjectSummary
}

// findProjects answers the finder of a form: the projects that fit what a person types.
func (c *Console) findProjects(w http.ResponseWriter, r *http.Request, s *session) error {
	v := foundView{Query: strings.TrimSpace(r.FormValue("q"))}
	if v.Query != "" {
		found, err := c.client(s, "").ProjectSummaries(r.Context(), query("q", v.Query, "limit", itoa(maxFound)))
		if err != nil {
			v.Problem = reason(err)
		}
		v.Rows = found.Rows
	}
	return c.render(w, r, s, http.StatusOK, "found", "Projects", v)
}
