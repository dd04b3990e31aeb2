package rowjson

import (
	"encoding/hex"
	"maps"
	"slices"

	"fingerpost/resolver/catalog"
)

// AppendAudit appends an entry of the audit trail as JSON. What an entry does not have is null.
func AppendAudit(dst []byte, e *catalog.AuditEntry) []byte {
	changes := make([]raw, len(e.Changes))
	for i := range e.Changes {
		changes[i] = changed(&e.Changes[i])
	}
	return AppendObject(dst,
		"id", e.ID,
		"time", e.Time,
		"generation", int64(e.Generation),
		"action", e.Action,
		"projectId", nullIf(e.ProjectID == 0, e.ProjectID),
		"object", nullIf(e.Object == "", e.Object),
		"changes", changes,
		"door", string(e.Door),
		"actor", nullIf(e.Actor == "", e.Actor),
		"key", nullIf(e.Key == "", e.Key),
		"subject", nullIf(e.Subject == "", e.Subject),
		"requestId", nullIf(e.RequestID == "", e.RequestID),
		"commit", nullIf(e.Commit == "", e.Commit),
		"hash", hex.EncodeToString(e.Hash[:]))
}

func changed(c *catalog.FieldChange) raw {
	fields := []any{"field", c.Field}
	if c.Secret {
		fields = append(fields, "secret", true)
	}
	return object(append(fields, "before", told(c.Before), "after", told(c.After))...)
}

// told returns a value of a FieldChange for an object. A type that no field has is null.
func told(value any) any {
	switch v := value.(type) {
	case bool, int64, string, []string:
		return v
	case map[string]string:
		labels := make([]catalog.Label, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			labels = append(labels, catalog.Label{Name: name, Value: v[name]})
		}
		return labels
	}
	return nil
}
