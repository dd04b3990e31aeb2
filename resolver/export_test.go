package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// Settle waits until the caches have processed all Sets, for tests that count.
func (r *Resolver) Settle() {
	r.known.Wait()
	r.unknown.Wait()
}

// DataDir returns the store's directory.
func (r *Resolver) DataDir() string { return r.options.DataDir }

// GatewayLines returns the Data and the certificate rule of an answer in the form Gateway.
func GatewayLines(p catalog.ProjectConfig, d catalog.Domain) (lines, tag string, own, underWildcards bool) {
	m := &match{found: true, project: p, domain: d}
	data := appendGateway(nil, m)
	a := &Answer{certificate: certificateOf(&m.domain)}
	return string(data), rowjson.ETag(data), a.MayHaveCertificate(false), a.MayHaveCertificate(true)
}
