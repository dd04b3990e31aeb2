package ledger

import (
	"crypto/sha256"

	"github.com/fxamacker/cbor/v2"

	"fingerpost/resolver/catalog"
)

// The record of an entry is a version byte, the hash of the previous entry in its chain, id, time and project of the
// entry, and the rest of it as CBOR (RFC 8949) in its deterministic form. In version 2 the slug of the project follows, as
// a second item of CBOR; in version 3 also the subject of the person, as a third. The hash of the entry is the SHA-256 of
// all of it but the version.

// The versions of an entry with a slug, and with a subject. Others have mailVersion.
const (
	sluggedVersion = 2
	subjectVersion = 3
)

// Offsets of the parts that a walk reads without decoding the rest.
const (
	offsetPrev    = 1
	offsetEntry   = offsetPrev + 32
	offsetProject = offsetEntry + 8 + 8 // after id and time
	auditHeadLen  = offsetProject + 8
)

func auditHash(rec []byte) [32]byte { return sha256.Sum256(rec[offsetPrev:]) }

// auditEncoding and auditDecoding are modes of the package store's kind: equal entries have equal bytes, and a record
// that has more than an entry is refused.
var (
	auditEncoding = mode(cbor.CoreDetEncOptions().EncMode())
	auditDecoding = mode(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxNestedLevels: 8, IntDec: cbor.IntDecConvertSignedOrFail, UTF8: cbor.UTF8DecodeInvalid,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

func mode[T any](m T, err error) T {
	if err != nil {
		panic("ledger: wrong options of the encoding: " + err.Error())
	}
	return m
}

// An auditBody is the part of an entry that is CBOR.
type auditBody struct {
	_          struct{} `cbor:",toarray"`
	Generation uint64
	Action     string
	Object     string
	Door       catalog.Door
	Actor      string
	Key        string
	RequestID  string
	Commit     string
	Changes    []auditChange
}

type auditChange struct {
	_             struct{} `cbor:",toarray"`
	Field         string
	Secret        bool
	Before, After any
}

func appendAudit(dst []byte, a *catalog.AuditEntry) []byte {
	e := encoder{dst}
	more := []string{a.Slug, a.Subject} // the items that follow the body
	switch {
	case a.Subject != "":
		e.byte(subjectVersion)
	case a.Slug != "":
		e.byte(sluggedVersion)
		more = more[:1]
	default:
		e.byte(mailVersion)
		more = nil
	}
	e.raw(a.Prev[:])
	e.fixed(a.ID)
	e.micros(a.Time)
	e.fixed(a.ProjectID)
	body := auditBody{Generation: a.Generation, Action: a.Action, Object: a.Object, Door: a.Door, Actor: a.Actor,
		Key: a.Key, RequestID: a.RequestID, Commit: a.Commit}
	for _, c := range a.Changes {
		body.Changes = append(body.Changes, auditChange{Field: c.Field, Secret: c.Secret, Before: c.Before, After: c.After})
	}
	b, err := auditEncoding.Marshal(&body)
	if err != nil {
		panic("ledger: an entry that cannot be encoded: " + err.Error()) // impossible, see catalog.FieldChange
	}
	e.raw(b)
	for _, text := range more {
		item, err := auditEncoding.Marshal(text)
		if err != nil {
			panic("ledger: a text that cannot be encoded: " + err.Error()) // impossible
		}
		e.raw(item)
	}
	return e.b
}

// decodeAudit decodes the entry with a key. It checks that the record is that of the key.
func decodeAudit(dst *catalog.AuditEntry, key, rec []byte) error {
	if err := checkVersion(rec, subjectVersion); err != nil {
		return err
	}
	d := decoder{s: string(rec[1:])}
	*dst = catalog.AuditEntry{Prev: d.hash(), ID: d.fixed(), Time: d.micros(), ProjectID: d.fixed()}
	var body auditBody
	rest, err := auditDecoding.UnmarshalFirst([]byte(d.s), &body)
	if rec[0] >= sluggedVersion && err == nil {
		rest, err = auditDecoding.UnmarshalFirst(rest, &dst.Slug)
	}
	if rec[0] == subjectVersion && err == nil {
		rest, err = auditDecoding.UnmarshalFirst(rest, &dst.Subject)
	}
	if d.failed || err != nil || len(rest) > 0 {
		return errRecord
	}
	dst.Generation, dst.Action, dst.Object, dst.Door = body.Generation, body.Action, body.Object, body.Door
	dst.Actor, dst.Key, dst.RequestID, dst.Commit = body.Actor, body.Key, body.RequestID, body.Commit
	for _, c := range body.Changes {
		dst.Changes = append(dst.Changes, catalog.FieldChange{Field: c.Field, Secret: c.Secret, Before: auditValue(c.Before),
			After: auditValue(c.After)})
	}
	if id, err := lastID(key); err != nil || id != dst.ID {
		return errRecord
	}
	dst.Hash = auditHash(rec)
	return nil
}

// auditValue returns a decoded value as a FieldChange has it.
func auditValue(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i], _ = v[i].(string)
		}
		return list
	case map[any]any:
		m := make(map[string]string, len(v))
		for name, value := range v {
			key, _ := name.(string)
			m[key], _ = value.(string)
		}
		return m
	}
	return v
}
