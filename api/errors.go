package api

import (
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

var (
	refuseLoading = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the service is loading its configuration"}
	refuseStale   = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this node has not heard the authority of its cluster for too long"}
	refuseMethod = &catalog.Error{Code: web.CodeMethodNotAllowed,
		Message: "the method is not allowed for this path; see the Allow header"}
	refuseRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed keys from this address; try again later"}
)
