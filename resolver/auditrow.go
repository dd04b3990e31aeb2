package resolver

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"fingerpost/resolver/catalog"
)

// AppendAudit appends an entry of the audit trail as JSON. What an entry does not have is null.
func AppendAudit(dst []byte, e *catalog.AuditEntry) []byte {
	dst = appendObject(dst,
		"id", e.ID,
		"time", e.Time,
		"generation", int64(e.Generation),
		"action", e.Action,
		"projectId", nullIf(e.ProjectID == 0, e.ProjectID),
		"object", nullIf(e.Object == "", e.Object))
	dst = append(dst[:len(dst)-1], `,"changes":[`...)
	for i := range e.Changes {
		dst = appendChange(appendComma(dst, i), &e.Changes[i])
	}
	dst = append(dst, `],`...)
	at := len(dst)
	dst = appendObject(dst,
		"door", string(e.Door),
		"actor", nullIf(e.Actor == "", e.Actor),
		"key", nullIf(e.Key == "", e.Key),
		"requestId", nullIf(e.RequestID == "", e.RequestID),
		"commit", nullIf(e.Commit == "", e.Commit),
		"hash", hex.EncodeToString(e.Hash[:]))
	return append(dst[:at], dst[at+1:]...) // without its opening brace
}

func appendChange(dst []byte, c *catalog.FieldChange) []byte {
	dst = AppendString(append(dst, `{"field":`...), c.Field)
	if c.Secret {
		dst = append(dst, `,"secret":true`...)
	}
	dst = appendChanged(append(dst, `,"before":`...), c.Before)
	dst = appendChanged(append(dst, `,"after":`...), c.After)
	return append(dst, '}')
}

// appendChanged appends a value of a FieldChange.
func appendChanged(dst []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case string:
		return AppendString(dst, v)
	case []string:
		dst = append(dst, '[')
		for i, s := range v {
			dst = AppendString(appendComma(dst, i), s)
		}
		return append(dst, ']')
	case map[string]string:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			dst = AppendString(append(appendName(dst, i, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}
