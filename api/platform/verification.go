package platform

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A Verifier knows whose domains are, where they point and whether their certificates work.
type Verifier interface {
	// View returns what is known of a domain, without asking anybody.
	View(ctx context.Context, of dcv.Subject) (catalog.VerificationView, error)
	// Check checks a domain now. With a retryAfter it has not, or is still at it: the view is that of the last check.
	Check(ctx context.Context, of dcv.Subject) (v catalog.VerificationView, retryAfter time.Duration, err error)
	// Claim returns the records that would prove a domain for a project that does not have it; nil: keys need no proof. With
	// ask it asks whether they are there.
	Claim(ctx context.Context, of dcv.Subject, ask bool) (records []catalog.RecordView, proven bool)
	// Each yields what is known of all domains, in short and in no order, until yield returns false.
	Each(yield func(Standing) bool) error
}

// A Standing is what is known of a domain, in short.
type Standing struct {
	ID                               int64 // of the domain
	Ownership, Pointing, Certificate string
	Ready                            bool
}

const (
	domainsPath      = "/api/platform/domains"
	verificationPath = "/api/platform/projects/{projectId}/domains/{domainId}/verification"
)

// CheckTime is how long a check on demand may take to answer.
const CheckTime = 10 * time.Second

var refuseVerification = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "this server does not know the verification of domains"}

// verificationRoutes lists the calls about the verification of domains.
func (a *API) verificationRoutes(onDomain func(func(*web.Request, *catalog.Project, *catalog.Domain) error) func(
	*web.Request) error) []web.Route {
	check := onDomain(a.checkVerification)
	list := web.Call("GET", domainsPath, catalog.MayRead, web.Proposable, a.listAllDomains)
	list.ByAuthorityWith = standingParams
	return []web.Route{
		list,
		web.Call("GET", verificationPath, catalog.MayRead, web.ByAuthority, onDomain(a.getVerification)),
		web.Call("POST", verificationPath+"/check", catalog.MayWrite, web.LiveOnly, func(r *web.Request) error {
			if r.Dry {
				return web.InvalidField(web.DryRunParam, "is not for this call: a check shows what name servers say now")
			}
			return check(r)
		}),
	}
}

// SubjectOf returns a project's domain as a Verifier knows it.
func SubjectOf(p *catalog.Project, d *catalog.Domain) dcv.Subject {
	s := dcv.Subject{Project: p.UUID, Name: d.Name}
	if d.Verified != nil {
		s.Verified = *d.Verified
	}
	return s
}

// getVerification answers GET …/verification.
func (a *API) getVerification(r *web.Request, p *catalog.Project, d *catalog.Domain) error {
	if a.Verifier == nil {
		return refuseVerification
	}
	v, err := a.Verifier.View(r.Context(), SubjectOf(p, d))
	if err != nil {
		return err
	}
	return r.SucceedJSON("verification found", v)
}

// checkVerification answers POST …/verification/check.
func (a *API) checkVerification(r *web.Request, p *catalog.Project, d *catalog.Domain) error {
	if a.Verifier == nil {
		return refuseVerification
	}
	ctx, cancel := context.WithTimeout(r.Context(), CheckTime)
	defer cancel()
	v, retryAfter, err := a.Verifier.Check(ctx, SubjectOf(p, d))
	if err != nil {
		return err
	}
	message := "domain checked"
	if retryAfter > 0 {
		message = "this is what the last check has found: try again later"
		web.RetryAfter(r.Ctx, retryAfter)
	}
	return r.SucceedJSON(message, v)
}

// standingParams are the parameters of GET /domains that select by verification.
var standingParams = []string{"ownership", "pointing", "certificate", "ready"}

// standingValues are the values of standingParams.
var standingValues = map[string][]string{
	"ownership":   {dcv.Trusted, dcv.Pending, dcv.Proven, dcv.Failing, dcv.Lost},
	"pointing":    {dcv.Here, dcv.Elsewhere, dcv.Nowhere, dcv.Spreading, dcv.Unknown},
	"certificate": {dcv.Good, dcv.Expiring, dcv.Wrong, dcv.NoCertificate, dcv.Unknown},
	"ready":       {"true", "false"},
}

// A standingFilter selects domains by verification: the value of each parameter that is given.
type standingFilter map[string]string

func parseStandingFilter(raw []byte) (f standingFilter, problems catalog.Problems) {
	q := web.ParseQuery(raw, standingParams...)
	for _, name := range standingParams {
		if value, given := q.Values[name]; given && !slices.Contains(standingValues[name], value) {
			q.Problems.Addf(name, "must be one of %s", strings.Join(standingValues[name], ", "))
		}
	}
	return q.Values, q.Problems
}

func (f standingFilter) selects(s *Standing) bool {
	is := func(name, value string) bool {
		want, given := f[name]
		return !given || want == value
	}
	return is("ownership", s.Ownership) && is("pointing", s.Pointing) && is("certificate", s.Certificate) &&
		is("ready", strconv.FormatBool(s.Ready))
}

// selected returns the ids of the domains that a filter by verification selects.
func (a *API) selected(by standingFilter) (ids map[int64]bool, err error) {
	if a.Verifier == nil {
		return nil, refuseVerification
	}
	ids = map[int64]bool{}
	err = a.Verifier.Each(func(s Standing) bool {
		if by.selects(&s) {
			ids[s.ID] = true
		}
		return true
	})
	return ids, err
}
