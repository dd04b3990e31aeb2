package web

import (
	"net/http"
	"strings"

	"fingerpost/resolver/catalog"
)

// Codes that exist only in HTTP.
const (
	CodeMethodNotAllowed catalog.Code = "METHOD_NOT_ALLOWED"
	CodeTimeout          catalog.Code = "REQUEST_TIMEOUT"
	CodeTooLarge         catalog.Code = "PAYLOAD_TOO_LARGE"
	CodeMediaType        catalog.Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeHeadersTooLarge  catalog.Code = "HEADERS_TOO_LARGE"
)

var statuses = map[catalog.Code]int{
	catalog.CodeValidation:   http.StatusBadRequest,
	catalog.CodeUnauthorized: http.StatusUnauthorized,

	catalog.CodeForbidden: http.StatusForbidden, catalog.CodeAuthDisabled: http.StatusForbidden,
	catalog.CodeDomainNotAllowed: http.StatusForbidden, catalog.CodeDomainNotVerified: http.StatusForbidden,
	catalog.CodeProjectSuspended: http.StatusForbidden, catalog.CodeMailDisabled: http.StatusForbidden,

	catalog.CodeNotFound: http.StatusNotFound,
	CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	CodeTimeout:          http.StatusRequestTimeout,

	catalog.CodeOverruled: http.StatusConflict, catalog.CodeGitOff: http.StatusConflict,
	catalog.CodeConflict: http.StatusConflict, catalog.CodeFileInvalid: http.StatusConflict,
	catalog.CodeFileChanged: http.StatusConflict, catalog.CodeReadOnly: http.StatusConflict,
	catalog.CodeExpression: http.StatusConflict, catalog.CodeSecretsMissing: http.StatusConflict,
	catalog.CodeSMTPNotConfigured: http.StatusConflict, catalog.CodeTemplateInactive: http.StatusConflict,
	catalog.CodePublicURLMissing: http.StatusConflict,
	catalog.CodePositionUnknown:  http.StatusConflict, catalog.CodeApprovalNeeded: http.StatusConflict,

	catalog.CodePrecondition:        http.StatusPreconditionFailed,
	CodeTooLarge:                    http.StatusRequestEntityTooLarge,
	CodeMediaType:                   http.StatusUnsupportedMediaType,
	catalog.CodeIdempotencyMismatch: http.StatusUnprocessableEntity,
	catalog.CodeNothingChanged:      http.StatusUnprocessableEntity,
	catalog.CodeRateLimited:         http.StatusTooManyRequests,
	CodeHeadersTooLarge:             http.StatusRequestHeaderFieldsTooLarge,
	catalog.CodeUnavailable:         http.StatusServiceUnavailable,
	catalog.CodeOutcomeUnknown:      http.StatusGatewayTimeout,
}

// StatusOf returns the HTTP status of a code. An unknown code is a bug, hence 500.
func StatusOf(code catalog.Code) int {
	if status, known := statuses[code]; known {
		return status
	}
	if strings.HasPrefix(string(code), SMTPCodes) {
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

// SMTPCodes is the prefix of the codes for failures of an SMTP server.
const SMTPCodes = "SMTP_"

// Invalid returns a 400 with one entry in details per problem.
func Invalid(problems ...catalog.Problem) *catalog.Error {
	return &catalog.Error{Code: catalog.CodeValidation, Message: "the request is invalid", Problems: problems}
}

// InvalidField returns a 400 on one field.
func InvalidField(field, message string) *catalog.Error {
	return Invalid(catalog.Problem{Path: field, Message: message})
}
