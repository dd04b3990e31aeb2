package gate

// A Kind says what sort of refusal a Refusal is.
type Kind int8

// The kinds of refusals.
const (
	Malformed Kind = iota
	HeadTooLarge
	BodyTooLarge
	TooSlow
)

// A Refusal says what is wrong with a message.
type Refusal struct {
	Kind    Kind
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Refusals of a message's framing. The connection is closed after the answer.
var (
	refuseRequestLine = malformed("the request line must read METHOD SP target SP HTTP/1.1")
	refuseVersion     = malformed("the HTTP version must be HTTP/1.1 or HTTP/1.0")
	refuseLineEnd     = malformed("every line of the header must end in CR LF, and neither may stand anywhere else in it")
	refuseFold        = malformed("a header line must not begin with a space or tab (obsolete line folding)")
	refuseHeaderName  = malformed("a header line must begin with a name, directly followed by a colon")
	refuseLength      = malformed("Content-Length must be given once, as plain decimal digits")
	refuseCoding      = malformed("Transfer-Encoding must be given once, as chunked")
	refuseFraming     = malformed("Transfer-Encoding goes with HTTP/1.1 only, and never together with Content-Length")
	refuseChunk       = malformed("the chunked body is malformed; chunk extensions and trailer fields are not accepted")
	refuseCut         = malformed("the request ended before it was complete")
	RefuseMalformed   = malformed("the request is malformed")
)

// Messages that are too large or too slow.
var (
	refuseHeadSize = &Refusal{HeadTooLarge, "request line and header together are larger than this server accepts"}
	refuseSlow     = &Refusal{TooSlow, "the request did not arrive in time"}
	refuseBodySize = &Refusal{BodyTooLarge, "the request body is larger than this server accepts"}
)

func malformed(message string) *Refusal { return &Refusal{Malformed, message} }
