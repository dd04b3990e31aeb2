package store

import (
	"bytes"
	"encoding/binary"
	"time"

	"fingerpost/resolver/catalog"
)

// The record of a project, domain or template begins with version, createdAt, updatedAt and uuid, at these offsets; its
// content, in CBOR, follows. Apply and Import compare the content without decoding it.
const (
	offsetCreated = 1
	offsetUpdated = offsetCreated + 8
	offsetUUID    = offsetUpdated + 8
	headerLen     = offsetUUID + 16
)

// newRecord returns the record of an object without times.
func newRecord(u catalog.UUID, content ...any) []byte {
	rec := make([]byte, headerLen, 512)
	rec[0] = recordVersion
	copy(rec[offsetUUID:], u[:])
	for _, v := range content {
		rec = append(rec, marshal(v)...)
	}
	return rec
}

// decodeRecord decodes the first part of a record's content into dst, which must be zero, and the front of the record
// into u, created and updated, which are fields of dst. It returns what follows.
func decodeRecord(rec []byte, dst any, u *catalog.UUID, created, updated *time.Time) (rest []byte, err error) {
	if len(rec) < headerLen || rec[0] != recordVersion {
		return nil, errRecord
	}
	if rest, err = decoding.UnmarshalFirst(rec[headerLen:], dst); err != nil {
		return nil, errRecord
	}
	*u = catalog.UUID(rec[offsetUUID:headerLen])
	*created, *updated = recordTimes(rec)
	return rest, nil
}

// sameObject reports whether two records have the same version and uuid.
func sameObject(a, b []byte) bool {
	return len(a) >= headerLen && len(b) >= headerLen && a[0] == b[0] && bytes.Equal(a[offsetUUID:headerLen],
		b[offsetUUID:headerLen])
}

// recordTimes returns the times in a record of at least headerLen bytes.
func recordTimes(rec []byte) (created, updated time.Time) {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(rec[offsetCreated:]))).UTC(),
		time.UnixMicro(int64(binary.BigEndian.Uint64(rec[offsetUpdated:]))).UTC()
}

func setRecordTimes(rec []byte, created, updated time.Time) {
	binary.BigEndian.PutUint64(rec[offsetCreated:], uint64(created.UnixMicro()))
	binary.BigEndian.PutUint64(rec[offsetUpdated:], uint64(updated.UnixMicro()))
}

// projectSettings is the second part of a project's content.
type projectSettings struct {
	_       struct{} `cbor:",toarray"`
	Service *catalog.ServiceSettings
	Auth    *catalog.AuthSettings
	SMTP    *catalog.SMTPConfig
}

// encodeProject encodes a project without domains and templates, which have records of their own.
func encodeProject(p *catalog.ProjectConfig) []byte {
	return newRecord(p.Project.UUID, &p.Project, &projectSettings{Service: &p.Service, Auth: &p.Auth, SMTP: p.SMTP})
}

// decodeProject fills dst. If dst has an SMTP config, it is reused as memory for the record's.
func decodeProject(dst *catalog.ProjectConfig, rec []byte) error {
	smtp := dst.SMTP
	if smtp != nil {
		*smtp = catalog.SMTPConfig{}
	}
	*dst = catalog.ProjectConfig{SMTP: smtp}
	rest, err := decodeProjectOnly(&dst.Project, rec)
	if err == nil {
		err = decodeSettings(dst, rest)
	}
	return err
}

// decodeSettings decodes what decodeProjectOnly returns into dst, whose settings must be zero.
func decodeSettings(dst *catalog.ProjectConfig, rest []byte) error {
	settings := projectSettings{Service: &dst.Service, Auth: &dst.Auth, SMTP: dst.SMTP}
	if decoding.Unmarshal(rest, &settings) != nil {
		return errRecord
	}
	dst.SMTP = settings.SMTP
	return nil
}

// decodeProjectOnly skips the settings, which lists of projects do not need, and returns them.
func decodeProjectOnly(dst *catalog.Project, rec []byte) (settings []byte, err error) {
	*dst = catalog.Project{}
	return decodeRecord(rec, dst, &dst.UUID, &dst.CreatedAt, &dst.UpdatedAt)
}

// decodeDomain returns what follows the domain's record: the copy of its project's, or nothing.
//
// We store the project next to the domain, so that a miss needs one lookup instead of two: without the copy a miss
// takes 1.15 times the CPU in a store of 1,000 projects. A project with many domains has no copies, or each change of
// the project would write thousands.
func decodeDomain(dst *catalog.Domain, value []byte) (projectCopy []byte, err error) {
	*dst = catalog.Domain{}
	return decodeRecord(value, dst, &dst.UUID, &dst.CreatedAt, &dst.UpdatedAt)
}

// maxCopies is the number of domains up to which a project is copied to each of them.
const maxCopies = 64

func decodeTemplate(dst *catalog.Template, rec []byte) error {
	*dst = catalog.Template{}
	rest, err := decodeRecord(rec, dst, &dst.UUID, &dst.CreatedAt, &dst.UpdatedAt)
	if len(rest) > 0 {
		err = errRecord
	}
	return err
}

// A keyRecord is a key. ExpiresAt is apart, because CBOR's own times end with the year 9999.
type keyRecord struct {
	_       struct{} `cbor:",toarray"`
	Key     *catalog.Key
	Expires instant
}

func encodeKey(k *catalog.Key) []byte {
	return encode(&keyRecord{Key: k, Expires: instantOf(k.ExpiresAt)})
}

func decodeKey(dst *catalog.Key, rec []byte) error {
	*dst = catalog.Key{}
	r := keyRecord{Key: dst}
	err := decode(rec, &r)
	dst.ExpiresAt = r.Expires.time()
	return err
}

// An instant is any time, with nanoseconds.
type instant struct {
	_         struct{} `cbor:",toarray"`
	Sec, Nsec int64
}

func instantOf(t time.Time) instant { return instant{Sec: t.Unix(), Nsec: int64(t.Nanosecond())} }
func (i instant) time() time.Time   { return time.Unix(i.Sec, i.Nsec).UTC() }
