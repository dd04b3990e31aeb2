package web

import (
	"errors"
	"strings"

	"fingerpost/api/gate"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The errors that several rooms answer with.
var (
	// RefuseKey is the same whatever is wrong. It names the headers, for somebody who sent the key as a bearer token.
	RefuseKey = &catalog.Error{Code: catalog.CodeUnauthorized, Message: "a valid key is required, as X-PLATFORM-KEY, " +
		"or for the mail API as X-Internal-Service-Token with X-Internal-Service-Name"}
	RefuseToken = &catalog.Error{Code: catalog.CodeUnauthorized, Message: "a valid token is required"}
	// RefuseSecret is the same whatever is wrong with the secret of an inbound block, or with its name.
	RefuseSecret = &catalog.Error{Code: catalog.CodeUnauthorized, Message: "the secret of an inbound block is required, " +
		"as the password of Basic, which stands in the address as https://fingerpost:SECRET@…, or as a Bearer token"}
	RefuseProject   = &catalog.Error{Code: catalog.CodeForbidden, Message: "the key does not reach this project"}
	refuseNoDomain  = &catalog.Error{Code: catalog.CodeNotFound, Message: "no project for this domain"}
	refuseSuspended = &catalog.Error{Code: catalog.CodeProjectSuspended,
		Message: "the project that the domain belongs to is suspended"}
	RefuseInternal = &catalog.Error{Code: catalog.CodeInternal,
		Message: "an internal error; the log has its cause under the request id"}
	RefusePath = &catalog.Error{Code: catalog.CodeNotFound, Message: "no such path"}
)

// RefuseAllow is the error for a key that has none of the permissions of which the operation needs one. It names the
// one that allows the least: propose before write, resolve before read.
func RefuseAllow(oneOf catalog.Permission) *catalog.Error {
	least := oneOf & -oneOf
	if oneOf&catalog.MayPropose != 0 {
		least = catalog.MayPropose
	}
	return Requires(least, "the key does not allow this operation")
}

// Requires is the error for a key that lacks permissions, all of which are needed.
func Requires(lacks catalog.Permission, message string) *catalog.Error {
	return &catalog.Error{Code: catalog.CodeForbidden, Requires: lacks,
		Message: message + ", which requires " + strings.Join(lacks.Words(), " and ")}
}

// gateCodes maps the gate's kinds of refusals to error codes.
var gateCodes = map[gate.Kind]catalog.Code{
	gate.Malformed: catalog.CodeValidation, gate.HeadTooLarge: CodeHeadersTooLarge,
	gate.BodyTooLarge: CodeTooLarge, gate.TooSlow: CodeTimeout,
}

// RefusedByGate returns the error that the client gets for a refusal of the gate.
func RefusedByGate(r *gate.Refusal) *catalog.Error {
	return &catalog.Error{Code: gateCodes[r.Kind], Message: r.Message}
}

// Visible returns the error that a client may see. An err that is not a *catalog.Error is a bug or a fault of the
// machine: its text goes to the log only, and hidden is true.
func Visible(err error) (e *catalog.Error, hidden bool) {
	if errors.As(err, &e) {
		return e, e.Code == catalog.CodeInternal
	}
	return RefuseInternal, true
}

// RefusedAnswer returns the error that the key gets instead of the answer, or nil. A domain of a project that the key
// does not reach is always FORBIDDEN, so that the domain's state does not show.
func RefusedAnswer(key *resolver.Key, answer *resolver.Answer) *catalog.Error {
	if answer.ProjectID != 0 && !key.Covers(answer.ProjectID) {
		return RefuseProject
	}
	if answer.Code != "" {
		return RefusedCode(answer)
	}
	return nil
}

// RefusedCode returns the error that an answer's Code stands for. The code is not "".
func RefusedCode(answer *resolver.Answer) *catalog.Error {
	switch answer.Code {
	case catalog.CodeNotFound:
		return refuseNoDomain
	case catalog.CodeDomainNotVerified:
		return answer.NotVerified.Refusal()
	case catalog.CodeProjectSuspended:
		return refuseSuspended
	}
	return RefuseInternal
}
