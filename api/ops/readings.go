package ops

import (
	"time"

	"fingerpost/api/conditions"
)

// Readings read figures of parts of the node. A nil function reads what its metric has without the part.
type Readings struct {
	Domains        Domains          // nil: this node checks none
	Senders        Facts            // State.Senders; nil: this node checks no senders
	Inbound        Facts            // State.Inbound; nil: there are none
	Webhooks       Facts            // State.Webhooks and State.WebhookProblem; nil: this node delivers no events
	DiskFree       func() float64   // free share of the disk of the data folder
	CertificateEnd func() time.Time // of the certificate that is served
	SpansDropped   func() uint64    // since the start
	// Outcomes yields how many outcomes of mails providers have told, by inbound block and result. Nil: none.
	Outcomes func(yield func(block, result string, count uint64))
	// KeySets yields the projects whose key set is needed and was never there. Nil: there are none.
	KeySets func(yield func(project int64, slug, message string))
}

func (r *Readings) diskFree() float64 {
	if r.DiskFree == nil {
		return 1
	}
	return r.DiskFree()
}

// worseSenders is the number of projects whose sender has got worse, as the conditions have them.
func (r *Readings) worseSenders() float64 {
	if r.Senders == nil {
		return 0
	}
	var s conditions.State
	r.Senders.AddFacts(&s)
	return float64(len(s.Senders) + s.MoreSenders)
}

func (r *Readings) certificateEnd() time.Time {
	if r.CertificateEnd == nil {
		return time.Time{}
	}
	return r.CertificateEnd()
}

func (r *Readings) spansDropped() float64 {
	if r.SpansDropped == nil {
		return 0
	}
	return float64(r.SpansDropped())
}
