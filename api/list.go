package api

import (
	"fingerpost/api/web"
	"fingerpost/resolver"
)

// listOwned answers with a list of what belongs to the project that the path parameter names. fields sort the list.
func listOwned[Row any](s *Server, r *web.Request, param string, fields []string, message string,
	read func(project int64, q resolver.Query) ([]*Row, int, error), appendRow func([]byte, *Row) []byte) error {
	_, bad := r.ID(param)
	page, err := web.ParsePaging(r.Ctx.URI().QueryString(), fields, bad)
	if err != nil {
		return err
	}
	project, err := s.projectOf(r, param)
	if err != nil {
		return err
	}
	rows, total, err := read(project.ID, page.Query(nil))
	if err != nil {
		return err
	}
	r.SucceedPage(message, web.AppendRows(rows, appendRow), page, total)
	return nil
}
