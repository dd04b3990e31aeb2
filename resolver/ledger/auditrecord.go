package ledger

import (
	"crypto/sha256"
	"maps"
	"slices"

	"fingerpost/resolver/catalog"
)

// The record of an entry is a version byte, the hash of the previous entry in its chain, and the entry. The hash of the
// entry is the SHA-256 of all of it but the version.

// Offsets of the parts that a walk reads without decoding the rest.
const (
	offsetPrev    = 1
	offsetEntry   = offsetPrev + 32
	offsetProject = offsetEntry + 8 + 8 // after id and time
	auditHeadLen  = offsetProject + 8
)

func auditHash(rec []byte) [32]byte { return sha256.Sum256(rec[offsetPrev:]) }

func appendAudit(dst []byte, a *catalog.AuditEntry) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.raw(a.Prev[:])
	e.fixed(a.ID)
	e.micros(a.Time)
	e.fixed(a.ProjectID)
	e.uint(a.Generation)
	for _, s := range []string{a.Action, a.Object, string(a.Door), a.Actor, a.Key, a.RequestID, a.Commit} {
		e.string(s)
	}
	e.uint(uint64(len(a.Changes)))
	for i := range a.Changes {
		c := &a.Changes[i]
		e.string(c.Field)
		e.bool(c.Secret)
		e.value(c.Before)
		e.value(c.After)
	}
	return e.b
}

// decodeAudit decodes the entry with a key. It checks that the record is that of the key.
func decodeAudit(dst *catalog.AuditEntry, key, rec []byte) error {
	d, err := mailDecoder(rec)
	if err != nil {
		return err
	}
	*dst = catalog.AuditEntry{
		Prev: d.hash(), ID: d.fixed(), Time: d.micros(), ProjectID: d.fixed(), Generation: d.uint(),
		Action: d.string(), Object: d.string(), Door: catalog.Door(d.string()), Actor: d.string(), Key: d.string(),
		RequestID: d.string(), Commit: d.string(),
	}
	for n := d.uint(); n > 0 && !d.failed; n-- {
		dst.Changes = append(dst.Changes, catalog.FieldChange{Field: d.string(), Secret: d.bool(), Before: d.value(),
			After: d.value()})
	}
	if id, err := lastID(key); err != nil || id != dst.ID {
		return errRecord
	}
	dst.Hash = auditHash(rec)
	return d.err()
}

// The kinds of values in a FieldChange.
const (
	valueNil = iota
	valueBool
	valueInt
	valueString
	valueList
	valueMap
)

// value writes a value of a FieldChange; the pairs of a map by name.
func (e *encoder) value(v any) {
	switch v := v.(type) {
	case nil:
		e.byte(valueNil)
	case bool:
		e.byte(valueBool)
		e.bool(v)
	case int64:
		e.byte(valueInt)
		e.int(v)
	case string:
		e.byte(valueString)
		e.string(v)
	case []string:
		e.byte(valueList)
		e.uint(uint64(len(v)))
		for _, s := range v {
			e.string(s)
		}
	case map[string]string:
		e.byte(valueMap)
		e.uint(uint64(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			e.string(name)
			e.string(v[name])
		}
	default:
		panic("ledger: a value that no FieldChange can have: impossible, see catalog.FieldChange")
	}
}

func (d *decoder) value() any {
	switch d.byte() {
	case valueNil:
		return nil
	case valueBool:
		return d.bool()
	case valueInt:
		return d.int()
	case valueString:
		return d.string()
	case valueList:
		list := []string{}
		for n := d.uint(); n > 0 && !d.failed; n-- {
			list = append(list, d.string())
		}
		return list
	case valueMap:
		m := map[string]string{}
		for n := d.uint(); n > 0 && !d.failed; n-- {
			name := d.string()
			m[name] = d.string()
		}
		return m
	}
	d.fail()
	return nil
}
