package api

import (
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

var (
	refuseMethod = &catalog.Error{Code: web.CodeMethodNotAllowed,
		Message: "the method is not allowed for this path; see the Allow header"}
	refuseRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed keys from this address; try again later"}
)
