package mailapi

import (
	"context"
	"net/netip"
	"time"

	"fingerpost/api/web"
	"fingerpost/mailer/sender"
	"fingerpost/resolver/catalog"
)

// SenderChecker checks what receivers find of a project's sender; *sender.Service implements it.
type SenderChecker interface {
	// Check checks now. With a retryAfter it has not: the result is that of the last check.
	Check(ctx context.Context, project int64, address netip.Addr) (r sender.Result, retryAfter time.Duration, err error)
}

// CheckTime is how long a check of a sender may take to answer.
const CheckTime = 10 * time.Second

var refuseSenders = &catalog.Error{Code: catalog.CodeUnavailable, Message: "this server checks no senders"}

// checkSender answers POST …/sender-check.
func (a *API) checkSender(r *web.Request, project *catalog.Project) error {
	if r.Dry {
		return web.InvalidField(web.DryRunParam, "is not for this call: a check shows what name servers say now")
	}
	address, err := senderAddress(r)
	if err != nil {
		return err
	}
	if a.Senders == nil {
		return refuseSenders
	}
	ctx, cancel := context.WithTimeout(r.Context(), CheckTime)
	defer cancel()
	result, retryAfter, err := a.Senders.Check(ctx, project.ID, address)
	if err != nil {
		return err
	}
	message := "sender checked"
	if retryAfter > 0 {
		message = "this is what the last check has found: try again later"
		web.RetryAfter(r.Ctx, retryAfter)
	}
	return r.SucceedJSON(message, result)
}

// senderAddress reads the address from which the relay sends; the zero one if the request has no body, or none in it.
func senderAddress(r *web.Request) (address netip.Addr, err error) {
	if text, err := r.BodyText(); err != nil || len(text) == 0 {
		return address, err
	}
	f, err := readForm(r, []string{"address"})
	if err != nil {
		return address, err
	}
	var text string
	if f.FillOptional("address", &text); text != "" {
		if address, err = netip.ParseAddr(text); err != nil || address.Zone() != "" {
			f.Fail("address", "must be an IP address: the one that the relay sends from")
		}
	}
	return address.Unmap(), f.Validated(nil)
}
