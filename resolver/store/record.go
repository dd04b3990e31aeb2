package store

import (
	"encoding/binary"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// recordVersion is the first byte of every encoded record.
const recordVersion = 1

// A record with times begins with version, createdAt, updatedAt and uuid, at these offsets; the content follows. Apply
// and Import compare the content without decoding it.
const (
	offsetCreated = 1
	offsetUpdated = offsetCreated + 8
	offsetUUID    = offsetUpdated + 8
	headerLen     = offsetUUID + 16
)

func (e *encoder) header(created, updated time.Time, u catalog.UUID) {
	e.byte(recordVersion)
	e.micros(created)
	e.micros(updated)
	e.raw(u[:])
}

// recordTimes returns the times in an encoded record of headerLen bytes or more.
func recordTimes(rec []byte) (created, updated time.Time) {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(rec[offsetCreated:]))).UTC(),
		time.UnixMicro(int64(binary.BigEndian.Uint64(rec[offsetUpdated:]))).UTC()
}

func setRecordTimes(rec []byte, created, updated time.Time) {
	binary.BigEndian.PutUint64(rec[offsetCreated:], uint64(created.UnixMicro()))
	binary.BigEndian.PutUint64(rec[offsetUpdated:], uint64(updated.UnixMicro()))
}

// sound reports whether rec is long enough and of this version.
func sound(rec []byte) bool { return len(rec) >= headerLen && rec[0] == recordVersion }

// ownPart returns the project's own fields within an encoded project, the part whose changes move updatedAt. It returns
// nil when the bytes are no project.
func ownPart(rec []byte) []byte {
	if !sound(rec) {
		return nil
	}
	n, size := binary.Uvarint(rec[headerLen:])
	if size <= 0 || n > uint64(len(rec)-headerLen-size) {
		return nil
	}
	return rec[headerLen : headerLen+size+int(n)]
}

func appendProject(dst []byte, p *catalog.ProjectConfig) []byte {
	s := projectScratches.Get().(*projectScratch)
	defer s.leave()
	*s.own, *s.service, *s.auth = p.Project, p.Service, p.Auth
	e := encoder{dst}
	e.header(s.own.CreatedAt, s.own.UpdatedAt, s.own.UUID)
	own := encoder{s.text[:0]}
	own.string(s.own.Slug)
	own.fields(s.ownFields)
	s.text = own.b
	e.uint(uint64(len(own.b)))
	e.raw(own.b)

	e.settings(s.service.ID, s.service.UUID, s.service.Said, s.serviceFields)
	e.settings(s.auth.ID, s.auth.UUID, s.auth.Said, s.authFields)
	e.bool(p.SMTP != nil)
	if p.SMTP != nil {
		*s.smtp = *p.SMTP
		e.uint(uint64(s.smtp.ID))
		e.raw(s.smtp.UUID[:])
		e.fields(s.smtpFields)
	}
	return e.b
}

// decodeProject fills dst, except domains and templates, which have records of their own.
func decodeProject(dst *catalog.ProjectConfig, id int64, rec []byte) error {
	d := newDecoder(rec, recordVersion)
	dst.SMTP = nil
	return d.projectConfig(dst, id)
}

// projectConfig decodes a project. If dst has an SMTP config, it is reused as memory for the record's.
func (d *decoder) projectConfig(dst *catalog.ProjectConfig, id int64) error {
	s := projectScratches.Get().(*projectScratch)
	defer s.leave()
	*s.own = catalog.Project{ID: id, CreatedAt: d.micros(), UpdatedAt: d.micros(), UUID: d.uuid()}
	own := decoder{s: d.string(), failed: d.failed}
	s.own.Slug = own.string()
	own.fields(s.ownFields)
	if own.err() != nil {
		d.fail()
	}
	*s.service = catalog.NewServiceSettings()
	s.service.ID, s.service.UUID, s.service.Said = int64(d.uint()), d.uuid(), catalog.FieldSet(d.uint())
	d.fields(s.serviceFields)
	*s.auth = catalog.NewAuthSettings()
	s.auth.ID, s.auth.UUID, s.auth.Said = int64(d.uint()), d.uuid(), catalog.FieldSet(d.uint())
	d.fields(s.authFields)
	room := dst.SMTP
	dst.Project, dst.Service, dst.Auth, dst.SMTP = *s.own, *s.service, *s.auth, nil
	if d.bool() {
		*s.smtp = catalog.SMTPConfig{ID: int64(d.uint()), UUID: d.uuid()}
		d.fields(s.smtpFields)
		if room == nil {
			room = new(catalog.SMTPConfig)
		}
		*room = *s.smtp
		dst.SMTP = room
	}
	return d.err()
}

// A projectScratch is memory for decoding and encoding a project. The lists of fields, which point into it, would be a
// third of what a miss allocates.
type projectScratch struct {
	own     *catalog.Project
	service *catalog.ServiceSettings
	auth    *catalog.AuthSettings
	smtp    *catalog.SMTPConfig

	ownFields, serviceFields, authFields, smtpFields []catalog.Field

	text []byte // of the project's own fields
}

// leave returns the scratch to the pool. Its strings may be borrowed, so it is cleared first.
func (s *projectScratch) leave() {
	*s.own, *s.service, *s.auth, *s.smtp = catalog.Project{}, catalog.ServiceSettings{}, catalog.AuthSettings{}, catalog.SMTPConfig{}
	projectScratches.Put(s)
}

var projectScratches = sync.Pool{New: func() any {
	s := &projectScratch{own: new(catalog.Project), service: new(catalog.ServiceSettings), auth: new(catalog.AuthSettings), smtp: new(catalog.SMTPConfig)}
	s.ownFields, s.serviceFields, s.authFields, s.smtpFields = s.own.Fields(), s.service.Fields(), s.auth.Fields(), s.smtp.Fields()
	return s
}}

// decodeProjectOnly skips the settings, which lists of projects do not need.
func decodeProjectOnly(dst *catalog.Project, id int64, rec []byte) error {
	d := newDecoder(rec, recordVersion)
	d.project(dst, id)
	if d.failed {
		return errRecord
	}
	return nil
}

func (d *decoder) project(dst *catalog.Project, id int64) {
	*dst = catalog.Project{ID: id, CreatedAt: d.micros(), UpdatedAt: d.micros(), UUID: d.uuid()}
	own := decoder{s: d.string(), failed: d.failed}
	dst.Slug = own.string()
	own.fields(dst.Fields())
	if own.err() != nil {
		d.fail()
	}
}

func (e *encoder) service(s *catalog.ServiceSettings) { e.settings(s.ID, s.UUID, s.Said, s.Fields()) }

func (e *encoder) settings(id int64, u catalog.UUID, said catalog.FieldSet, fields []catalog.Field) {
	e.uint(uint64(id))
	e.raw(u[:])
	e.uint(uint64(said))
	e.fields(fields)
}

func (d *decoder) service(dst *catalog.ServiceSettings) {
	*dst = catalog.NewServiceSettings()
	dst.ID, dst.UUID, dst.Said = int64(d.uint()), d.uuid(), catalog.FieldSet(d.uint())
	d.fields(dst.Fields())
}

func (e *encoder) auth(a *catalog.AuthSettings) { e.settings(a.ID, a.UUID, a.Said, a.Fields()) }

func (d *decoder) auth(dst *catalog.AuthSettings) {
	*dst = catalog.NewAuthSettings()
	dst.ID, dst.UUID, dst.Said = int64(d.uint()), d.uuid(), catalog.FieldSet(d.uint())
	d.fields(dst.Fields())
}

func appendDomain(dst []byte, dom *catalog.Domain) []byte {
	e := encoder{dst}
	e.header(dom.CreatedAt, dom.UpdatedAt, dom.UUID)
	e.fixed(dom.ID)
	e.fixed(dom.ProjectID)
	// The name is the key, but renaming a domain must count as new content, to move updatedAt.
	e.string(dom.Name)
	e.fields(dom.Fields())
	return e.b
}

func decodeDomain(dst *catalog.Domain, rec []byte) error {
	d := newDecoder(rec, recordVersion)
	return d.domain(dst)
}

func (d *decoder) domain(dst *catalog.Domain) error {
	*dst = catalog.Domain{
		CreatedAt: d.micros(), UpdatedAt: d.micros(), UUID: d.uuid(),
		ID: d.fixed(), ProjectID: d.fixed(), Name: d.string(),
	}
	d.fields(dst.Fields())
	return d.err()
}

func appendTemplate(dst []byte, t *catalog.Template) []byte {
	e := encoder{dst}
	e.header(t.CreatedAt, t.UpdatedAt, t.UUID)
	e.fixed(t.ID)
	e.fixed(t.ProjectID)
	e.string(t.Code)
	e.fields(t.Fields())
	return e.b
}

func decodeTemplate(dst *catalog.Template, rec []byte) error {
	d := newDecoder(rec, recordVersion)
	*dst = catalog.Template{
		CreatedAt: d.micros(), UpdatedAt: d.micros(), UUID: d.uuid(),
		ID: d.fixed(), ProjectID: d.fixed(), Code: d.string(),
	}
	d.fields(dst.Fields())
	return d.err()
}

func appendKey(dst []byte, k *catalog.Key) []byte {
	e := encoder{dst}
	e.byte(recordVersion)
	e.string(k.Name)
	e.string(k.ID)
	e.raw(k.Hash[:])
	e.byte(byte(k.Allow))
	e.bool(k.Projects != nil) // nil means every project, empty means none
	if k.Projects != nil {
		e.uint(uint64(len(k.Projects)))
		for _, slug := range k.Projects {
			e.string(slug)
		}
	}
	e.instant(k.ExpiresAt)
	return e.b
}

func decodeKey(dst *catalog.Key, rec []byte) error {
	d := newDecoder(rec, recordVersion)
	*dst = catalog.Key{Name: d.string(), ID: d.string(), Hash: d.hash(), Allow: catalog.Permission(d.byte())}
	if d.bool() {
		n := d.count()
		dst.Projects = make([]string, 0, n)
		for range n {
			dst.Projects = append(dst.Projects, d.string())
		}
	}
	dst.ExpiresAt = d.instant()
	return d.err()
}

func appendDefaults(dst []byte, x *catalog.Defaults) []byte {
	e := encoder{dst}
	e.byte(recordVersion)
	e.bool(x.Service != nil)
	if x.Service != nil {
		e.service(x.Service)
	}
	e.bool(x.Auth != nil)
	if x.Auth != nil {
		e.auth(x.Auth)
	}
	return e.b
}

func decodeDefaults(rec []byte) (*catalog.Defaults, error) {
	d := newDecoder(rec, recordVersion)
	x := new(catalog.Defaults)
	if d.bool() {
		x.Service = new(catalog.ServiceSettings)
		d.service(x.Service)
	}
	if d.bool() {
		x.Auth = new(catalog.AuthSettings)
		d.auth(x.Auth)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return x, nil
}

func appendSealing(dst []byte, s *catalog.Sealing) []byte {
	e := encoder{dst}
	e.byte(recordVersion)
	e.bool(s.Require)
	e.uint(uint64(len(s.Recipients)))
	for _, r := range s.Recipients {
		e.string(r)
	}
	return e.b
}

func decodeSealing(rec []byte) (*catalog.Sealing, error) {
	d := newDecoder(rec, recordVersion)
	s := &catalog.Sealing{Require: d.bool()}
	for range d.count() {
		s.Recipients = append(s.Recipients, d.string())
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return s, nil
}
