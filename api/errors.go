package api

import (
	"errors"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

var (
	refuseLoading = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the service is loading its configuration"}
	refuseStale   = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this node has not heard the authority of its cluster for too long"}
	refusePath   = &catalog.Error{Code: catalog.CodeNotFound, Message: "no such path"}
	refuseMethod = &catalog.Error{Code: web.CodeMethodNotAllowed,
		Message: "the method is not allowed for this path; see the Allow header"}
	// refuseKey is the same whatever is wrong. It names the headers, for somebody who sent the key as a bearer token.
	refuseKey = &catalog.Error{Code: catalog.CodeUnauthorized, Message: "a valid key is required, as X-PLATFORM-KEY, " +
		"or for the mail API as X-Internal-Service-Token with X-Internal-Service-Name"}
	refuseRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed keys from this address; try again later"}
	refuseToken     = &catalog.Error{Code: catalog.CodeUnauthorized, Message: "a valid token is required"}
	refuseTokenRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed tokens from this address; try again later"}
	refuseAllow   = &catalog.Error{Code: catalog.CodeForbidden, Message: "the key does not allow this operation"}
	refuseProject = &catalog.Error{Code: catalog.CodeForbidden, Message: "the key does not reach this project"}
	refuseRename  = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "a project gets another slug only by a key with write on every project: other keys may be prepared for " +
			"the new slug"}
	refuseNoDomain  = &catalog.Error{Code: catalog.CodeNotFound, Message: "no project for this domain"}
	refuseInactive  = &catalog.Error{Code: catalog.CodeDomainNotVerified, Message: "the domain is declared but not active"}
	refuseSuspended = &catalog.Error{Code: catalog.CodeProjectSuspended,
		Message: "the project that the domain belongs to is suspended"}
	refuseInternal = &catalog.Error{Code: catalog.CodeInternal,
		Message: "an internal error; the log has its cause under the request id"}
)

// gateCodes maps the gate's kinds of refusals to error codes.
var gateCodes = map[gate.Kind]catalog.Code{
	gate.Malformed: catalog.CodeValidation, gate.HeadTooLarge: web.CodeHeadersTooLarge,
	gate.BodyTooLarge: web.CodeTooLarge, gate.TooSlow: web.CodeTimeout,
}

// refusedByGate returns the error that the client gets for a refusal of the gate.
func refusedByGate(r *gate.Refusal) *catalog.Error {
	return &catalog.Error{Code: gateCodes[r.Kind], Message: r.Message}
}

// visible returns the error that a client may see. An err that is not a *catalog.Error is a bug or a fault of the
// machine: its text goes to the log only, and hidden is true.
func visible(err error) (e *catalog.Error, hidden bool) {
	if errors.As(err, &e) {
		return e, e.Code == catalog.CodeInternal
	}
	return refuseInternal, true
}
