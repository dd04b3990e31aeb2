package catalog

import (
	"errors"
	"slices"
	"strings"
)

// A Code names a failure for clients (api/README.md, Errors). Only api knows its HTTP status.
type Code string

// The codes that both services have.
const (
	CodeValidation        Code = "VALIDATION_ERROR"
	CodeUnauthorized      Code = "UNAUTHORIZED"
	CodeForbidden         Code = "FORBIDDEN"
	CodeDomainNotAllowed  Code = "DOMAIN_NOT_ALLOWED"
	CodeDomainNotVerified Code = "DOMAIN_NOT_VERIFIED"
	CodeProjectSuspended  Code = "PROJECT_SUSPENDED"
	CodeAuthDisabled      Code = "AUTH_DISABLED"
	CodeNotFound          Code = "NOT_FOUND"
	CodeGitOff            Code = "GIT_NOT_ENABLED"
	CodeOverruled         Code = "OVERRULED"
	CodeApprovalNeeded    Code = "APPROVAL_NEEDED"
	CodeNothingChanged    Code = "NOTHING_CHANGED"
	CodeConflict          Code = "CONFLICT"
	CodePositionUnknown   Code = "POSITION_UNKNOWN"
	CodeFileInvalid       Code = "CONFIG_FILE_INVALID"
	CodeFileChanged       Code = "CONFIG_CHANGED_ON_DISK"
	CodeReadOnly          Code = "CONFIG_READ_ONLY"
	CodePrecondition      Code = "PRECONDITION_FAILED"
	CodeExpression        Code = "FIELD_IS_EXPRESSION"
	CodeSecretsMissing    Code = "SECRETS_NOT_CONFIGURED"
	CodeInternal          Code = "INTERNAL_ERROR"
	CodeUnavailable       Code = "UNAVAILABLE"
	CodeOutcomeUnknown    Code = "OUTCOME_UNKNOWN"
	CodeRateLimited       Code = "RATE_LIMITED"
)

// The codes of the mail service only. Failures of an SMTP server have codes of their own, which begin with SMTP_
// (mailer/README.md, Failures).
const (
	CodeMailDisabled        Code = "MAIL_DISABLED"
	CodeSMTPNotConfigured   Code = "SMTP_NOT_CONFIGURED"
	CodeTemplateInactive    Code = "TEMPLATE_INACTIVE"
	CodeIdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	CodeSuppressed          Code = "SUPPRESSED" // of log entries alone
	CodePublicURLMissing    Code = "PUBLIC_URL_MISSING"
)

// An Error is a failure to show to a client. Its text contains no secret and no path outside the config folder.
type Error struct {
	Code     Code
	Message  string
	Problems Problems // per field, may be empty
	// Requires are permissions that the caller's key lacks, all of which are needed; 0 for any other failure.
	Requires Permission
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NotFound is the error for a missing object; what names its kind.
func NotFound(what string) error { return &Error{Code: CodeNotFound, Message: "no such " + what} }

// IsNotFound reports whether err is an Error NOT_FOUND.
func IsNotFound(err error) bool { return hasCode(err, CodeNotFound) }

// IsConflict reports whether err is an Error CONFLICT.
func IsConflict(err error) bool { return hasCode(err, CodeConflict) }

func hasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Unavailable is the error while something cannot be read or written for a time.
func Unavailable(message string) error { return &Error{Code: CodeUnavailable, Message: message} }

// CheckSort reports a field that a list cannot be sorted by; "" is the list's own order.
func CheckSort(sort string, fields []string) error {
	if sort == "" || slices.Contains(fields, sort) {
		return nil
	}
	e := &Error{Code: CodeValidation, Message: "the list cannot be sorted by this field"}
	e.Problems.Addf("sort", "must be one of %s", strings.Join(fields, ", "))
	return e
}

// Unreadable is the client's error for a failed read of a store: err itself, if it is one for clients.
func Unreadable(err error) error {
	if own, is := errors.AsType[*Error](err); is {
		return own
	}
	return Unavailable("the store cannot be read at the moment")
}
