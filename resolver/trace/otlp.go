package trace

import (
	"encoding/json"
	"fmt"
)

// The document of OTLP in JSON: ids are hex, and numbers of 64 bits are text. otlpHead and otlpTail enclose the spans.
const (
	otlpHead = `{"resourceSpans":[{"resource":{"attributes":[%s]},"scopeSpans":[{"scope":{"name":"fingerpost"},"spans":[`
	otlpTail = `]}]}]}`
)

// appendTo appends the span to a document.
func (s *Span) appendTo(b []byte) []byte {
	b = fmt.Appendf(b, `{"traceId":"%x","spanId":"%x","flags":1,"name":%s,"kind":%d,"startTimeUnixNano":"%d",`+
		`"endTimeUnixNano":"%d","attributes":[%s]`, s.id.Trace[:], s.id.Span[:], quote(s.name), s.kind, s.begun.UnixNano(),
		s.ended.UnixNano(), s.attributes)
	if s.linked {
		b = fmt.Appendf(b, `,"links":[{"traceId":"%x","spanId":"%x"}]`, s.cause.Trace[:], s.cause.Span[:])
	} else {
		b = fmt.Appendf(b, `,"parentSpanId":"%x"`, s.cause.Span[:])
	}
	if s.failed {
		b = append(b, `,"status":{"code":2}`...)
	}
	return append(b, '}')
}

// appendAttribute appends an attribute to a list of them. value is JSON, of a kind of OTLP's AnyValue.
func appendAttribute(list []byte, key, kind, value string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	list = append(append(list, `{"key":"`...), key...)
	list = append(append(list, `","value":{"`...), kind...)
	return append(append(append(list, `":`...), value...), "}}"...)
}

// quote returns a text as JSON. Bytes that are not UTF-8 become U+FFFD.
func quote(text string) string {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // never fails
			return string(quoted)
		}
	}
	return `"` + text + `"`
}
