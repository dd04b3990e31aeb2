package trace

import (
	"encoding/json"
	"strconv"
	"time"
)

// An object is one of JSON. In OTLP ids are hex, and numbers of 64 bits are text.
type object map[string]any

// otlp encodes ended spans. resource describes the process.
func otlp(resource []object, spans []*Span) ([]byte, error) {
	list := make([]object, len(spans))
	for i, s := range spans {
		list[i] = s.otlp()
	}
	return json.Marshal(object{"resourceSpans": []object{{"resource": object{"attributes": resource},
		"scopeSpans": []object{{"scope": object{"name": "fingerpost"}, "spans": list}}}}})
}

func (s *Span) otlp() object {
	o := object{"traceId": s.id.TraceID(), "spanId": s.id.SpanID(), "flags": 1, "name": s.name, "kind": s.kind,
		"startTimeUnixNano": nanos(s.begun), "endTimeUnixNano": nanos(s.ended), "attributes": s.attributes}
	if s.parent != [8]byte{} {
		o["parentSpanId"] = ID{Span: s.parent}.SpanID()
	}
	if s.link != (ID{}) {
		o["links"] = []object{{"traceId": s.link.TraceID(), "spanId": s.link.SpanID()}}
	}
	if s.failed {
		o["status"] = object{"code": 2, "message": s.failure}
	}
	return o
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func text(key, value string) object {
	return object{"key": key, "value": object{"stringValue": value}}
}

func number(key string, value int64) object {
	return object{"key": key, "value": object{"intValue": strconv.FormatInt(value, 10)}}
}
