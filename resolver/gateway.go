package resolver

import (
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// certificate says whether gateways may fetch a certificate for the name of an answer.
type certificate uint8

const (
	certificateNo       certificate = iota
	certificateWildcard             // a wildcard covers the name, and its record does not say
	certificateYes
)

func certificateOf(d *catalog.Domain) certificate {
	switch {
	case d.MayHaveCertificates():
		return certificateYes
	case d.Certificates == nil:
		return certificateWildcard
	}
	return certificateNo
}

// MayHaveCertificate reports whether a gateway may fetch a certificate for the name. wildcards is the answer for names
// that only a wildcard covers, if its record does not say. a has the form Gateway.
func (a *Answer) MayHaveCertificate(wildcards bool) bool {
	return a.certificate == certificateYes || wildcards && a.certificate == certificateWildcard
}

// appendGateway appends the header lines that tell a gateway about the project. Every line ends with CR LF, and no
// value contains one or is empty: what a gateway does with an empty header differs from one to the next.
func appendGateway(dst []byte, m *match) []byte {
	service, auth := m.defaults.InForce(&m.project)
	p := &m.project.Project
	b := appendLine(dst, "X-Project-Id", strconv.FormatInt(p.ID, 10))
	b = appendLine(b, "X-Project-Uuid", p.UUID.String())
	b = appendLine(b, "X-Project-Slug", p.Slug)
	b = appendLine(b, "X-Project-Status", p.Status)
	b = appendLine(b, "X-Matched-Domain", m.domain.Name)
	b = appendLine(b, "X-Auth-Enabled", strconv.FormatBool(service.AuthEnabled))
	b = appendLine(b, "X-Registration-Mode", auth.RegistrationMode)
	for _, l := range p.Labels {
		if l.Value != "" {
			b = appendLine(b, labelHeader(l.Name), l.Value)
		}
	}
	return b
}

func appendLine(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(catalog.AppendHeaderText(dst, value), "\r\n"...)
}

// labelHeader returns the header of a label: X-Label-Cost-Center for cost_center. nginx drops headers whose names have
// underscores.
func labelHeader(name string) string {
	b := []byte("X-Label-" + strings.ReplaceAll(name, "_", "-"))
	for i := len("X-Label-"); i < len(b); i++ {
		if b[i-1] == '-' && b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
