package api

import (
	"errors"
	"net/http"
	"strings"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

// Codes that exist only in HTTP.
const (
	codeMethodNotAllowed catalog.Code = "METHOD_NOT_ALLOWED"
	codeTimeout          catalog.Code = "REQUEST_TIMEOUT"
	codeTooLarge         catalog.Code = "PAYLOAD_TOO_LARGE"
	codeMediaType        catalog.Code = "UNSUPPORTED_MEDIA_TYPE"
	codeHeadersTooLarge  catalog.Code = "HEADERS_TOO_LARGE"
)

var statuses = map[catalog.Code]int{
	catalog.CodeValidation:   http.StatusBadRequest,
	catalog.CodeUnauthorized: http.StatusUnauthorized,

	catalog.CodeForbidden: http.StatusForbidden, catalog.CodeAuthDisabled: http.StatusForbidden,
	catalog.CodeDomainNotAllowed: http.StatusForbidden, catalog.CodeDomainNotVerified: http.StatusForbidden,
	catalog.CodeProjectSuspended: http.StatusForbidden, catalog.CodeMailDisabled: http.StatusForbidden,

	catalog.CodeNotFound: http.StatusNotFound,
	codeMethodNotAllowed: http.StatusMethodNotAllowed,
	codeTimeout:          http.StatusRequestTimeout,

	catalog.CodeOverruled: http.StatusConflict, catalog.CodeGitOff: http.StatusConflict,
	catalog.CodeConflict: http.StatusConflict, catalog.CodeFileInvalid: http.StatusConflict,
	catalog.CodeFileChanged: http.StatusConflict, catalog.CodeReadOnly: http.StatusConflict,
	catalog.CodeExpression: http.StatusConflict, catalog.CodeSecretsMissing: http.StatusConflict,
	catalog.CodeSMTPNotConfigured: http.StatusConflict, catalog.CodeTemplateInactive: http.StatusConflict,
	catalog.CodePositionUnknown: http.StatusConflict,

	catalog.CodePrecondition:        http.StatusPreconditionFailed,
	codeTooLarge:                    http.StatusRequestEntityTooLarge,
	codeMediaType:                   http.StatusUnsupportedMediaType,
	catalog.CodeIdempotencyMismatch: http.StatusUnprocessableEntity,
	catalog.CodeNothingChanged:      http.StatusUnprocessableEntity,
	catalog.CodeRateLimited:         http.StatusTooManyRequests,
	codeHeadersTooLarge:             http.StatusRequestHeaderFieldsTooLarge,
	catalog.CodeUnavailable:         http.StatusServiceUnavailable,
	catalog.CodeOutcomeUnknown:      http.StatusGatewayTimeout,
}

// statusOf returns the HTTP status of a code. An unknown code is a bug, hence 500.
func statusOf(code catalog.Code) int {
	if status, known := statuses[code]; known {
		return status
	}
	if strings.HasPrefix(string(code), smtpCodes) {
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

// smtpCodes is the prefix of the codes for failures of an SMTP server.
const smtpCodes = "SMTP_"

// A refusal is an error without details of the request.
type refusal = catalog.Error

var (
	refuseLoading = &refusal{Code: catalog.CodeUnavailable, Message: "the service is loading its configuration"}
	refuseStale   = &refusal{Code: catalog.CodeUnavailable,
		Message: "this node has not heard the authority of its cluster for too long"}
	refusePath   = &refusal{Code: catalog.CodeNotFound, Message: "no such path"}
	refuseMethod = &refusal{Code: codeMethodNotAllowed,
		Message: "the method is not allowed for this path; see the Allow header"}
	// refuseKey is the same whatever is wrong. It names the headers, for somebody who sent the key as a bearer token.
	refuseKey = &refusal{Code: catalog.CodeUnauthorized, Message: "a valid key is required, as X-PLATFORM-KEY, " +
		"or for the mail API as X-Internal-Service-Token with X-Internal-Service-Name"}
	refuseRate = &refusal{Code: catalog.CodeRateLimited,
		Message: "too many failed keys from this address; try again later"}
	refuseToken     = &refusal{Code: catalog.CodeUnauthorized, Message: "a valid token is required"}
	refuseTokenRate = &refusal{Code: catalog.CodeRateLimited,
		Message: "too many failed tokens from this address; try again later"}
	refuseAllow   = &refusal{Code: catalog.CodeForbidden, Message: "the key does not allow this operation"}
	refuseProject = &refusal{Code: catalog.CodeForbidden, Message: "the key does not reach this project"}
	refuseRename  = &refusal{Code: catalog.CodeForbidden,
		Message: "a project gets another slug only by a key with write on every project: other keys may be prepared for " +
			"the new slug"}
	refuseNoDomain  = &refusal{Code: catalog.CodeNotFound, Message: "no project for this domain"}
	refuseInactive  = &refusal{Code: catalog.CodeDomainNotVerified, Message: "the domain is declared but not active"}
	refuseSuspended = &refusal{Code: catalog.CodeProjectSuspended,
		Message: "the project that the domain belongs to is suspended"}
	refuseInternal = &refusal{Code: catalog.CodeInternal,
		Message: "an internal error; the log has its cause under the request id"}
)

// gateCodes maps the gate's kinds of refusals to error codes.
var gateCodes = map[gate.Kind]catalog.Code{
	gate.Malformed: catalog.CodeValidation, gate.HeadTooLarge: codeHeadersTooLarge, gate.BodyTooLarge: codeTooLarge,
	gate.TooSlow: codeTimeout,
}

// refusedByGate returns the error that the client gets for a refusal of the gate.
func refusedByGate(r *gate.Refusal) *catalog.Error {
	return &catalog.Error{Code: gateCodes[r.Kind], Message: r.Message}
}

// invalid returns a 400 with one entry in details per problem.
func invalid(problems ...catalog.Problem) *catalog.Error {
	return &catalog.Error{Code: catalog.CodeValidation, Message: "the request is invalid", Problems: problems}
}

// invalidField returns a 400 on one field.
func invalidField(field, message string) *catalog.Error {
	return invalid(catalog.Problem{Path: field, Message: message})
}

// visible returns the error that a client may see. An err that is not a *catalog.Error is a bug or a fault of the
// machine: its text goes to the log only, and hidden is true.
func visible(err error) (e *catalog.Error, hidden bool) {
	if errors.As(err, &e) {
		return e, e.Code == catalog.CodeInternal
	}
	return refuseInternal, true
}

func isNotFound(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && e.Code == catalog.CodeNotFound
}
