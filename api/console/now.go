package console

import "net/http"

// now answers the start page. Links to a look-up of the time when that was the start page still lead there.
func (c *Console) now(w http.ResponseWriter, r *http.Request, s *session) error {
	if domain := r.FormValue("domain"); domain != "" {
		return seeOther(w, r, link(Prefix+"lookup", "domain", domain))
	}
	return c.render(w, r, s, http.StatusOK, "now", "Now", nil)
}
