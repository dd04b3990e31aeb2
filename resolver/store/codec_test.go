package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/quick"
	"time"

	"fingerpost/resolver/catalog"
)

// randomize fills the attributes of a noun with random values of their types.
func randomize(r *rand.Rand, fields []catalog.Field) {
	text := func() string {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	}
	for i := range fields {
		switch v := fields[i].Value.(type) {
		case *bool:
			*v = r.IntN(2) == 1
		case *int:
			*v = int(r.Int64()) - r.IntN(2)*int(r.Int64())
		case *string:
			*v = text()
		case **string:
			if *v = nil; r.IntN(2) == 1 {
				s := text()
				*v = &s
			}
		case *catalog.Secret:
			*v = catalog.Secret{Source: catalog.SecretSource(r.IntN(5)), Ref: text()}
		}
	}
}

func randomUUID(r *rand.Rand) (u catalog.UUID) {
	for i := range u {
		u[i] = byte(r.IntN(256))
	}
	return u
}

func TestRecordsRoundTrip(t *testing.T) {
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		when := time.UnixMicro(r.Int64N(1 << 52)).UTC()
		p := catalog.ProjectConfig{
			Project: catalog.Project{ID: r.Int64N(1 << 48), UUID: randomUUID(r), Slug: "slug", CreatedAt: when, UpdatedAt: when.Add(time.Second)},
			Service: catalog.ServiceSettings{ID: r.Int64N(1 << 48), UUID: randomUUID(r), Said: catalog.FieldSet(r.Uint32())},
			Auth:    catalog.AuthSettings{ID: r.Int64N(1 << 48), UUID: randomUUID(r), Said: catalog.FieldSet(r.Uint32())},
		}
		randomize(r, p.Project.Fields())
		randomize(r, p.Service.Fields())
		randomize(r, p.Auth.Fields())
		if r.IntN(2) == 1 {
			p.SMTP = &catalog.SMTPConfig{ID: r.Int64N(1 << 48), UUID: randomUUID(r)}
			randomize(r, p.SMTP.Fields())
		}
		var gotP catalog.ProjectConfig
		rec := appendProject(nil, &p)
		same := decodeProject(&gotP, p.Project.ID, rec) == nil && reflect.DeepEqual(p, gotP)
		var only catalog.Project
		same = same && decodeProjectOnly(&only, p.Project.ID, rec) == nil && reflect.DeepEqual(only, p.Project)

		d := catalog.Domain{ID: 3, UUID: randomUUID(r), ProjectID: 4, Name: "a.example", CreatedAt: when, UpdatedAt: when}
		randomize(r, d.Fields())
		var gotD catalog.Domain
		same = same && decodeDomain(&gotD, appendDomain(nil, &d)) == nil && d == gotD

		x := catalog.Template{ID: 3, UUID: randomUUID(r), Code: "X", CreatedAt: when, UpdatedAt: when}
		randomize(r, x.Fields())
		var gotX catalog.Template
		same = same && decodeTemplate(&gotX, appendTemplate(nil, &x)) == nil && x == gotX

		defaults := catalog.Defaults{Service: &p.Service}
		gotDefaults, err := decodeDefaults(appendDefaults(nil, &defaults))
		return same && err == nil && reflect.DeepEqual(&defaults, gotDefaults)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestKeysAndRowsRoundTrip(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, k := range []catalog.Key{
		{Name: "n", ID: "abcdef", Hash: [32]byte{1, 2}, Allow: catalog.MayRead | catalog.MaySecrets},
		{Name: "n", Projects: []string{}, ExpiresAt: when},
		{Name: "n", Projects: []string{"a", "b"}, ExpiresAt: when},
	} {
		var got catalog.Key
		if err := decodeKey(&got, appendKey(nil, &k)); err != nil || !reflect.DeepEqual(k, got) {
			t.Errorf("%+v became %+v, %v", k, got, err)
		}
	}
	for _, row := range []catalog.FileRow{
		{Stamp: catalog.Stamp{Hash: [32]byte{1}}},
		{Warned: true},
		{
			Stamp: catalog.Stamp{Size: 1 << 40, ModTime: when, Changed: when.Add(time.Nanosecond), Inode: 1 << 63, Hash: [32]byte{9}},
			Deps:  []catalog.Dep{{Path: "x.html", Stamp: catalog.Stamp{ModTime: when, Changed: when}}},
		},
	} {
		for _, declared := range []*catalog.Declared{{}, {
			Projects: []catalog.ProjectConfig{{
				Project: catalog.Project{Slug: "p", ID: 2},
				Domains: []catalog.Domain{{Name: "a", UUID: catalog.UUID{1}, ID: 1}},
			}},
			Keys:    []catalog.Key{{Name: "k", ID: "abcdef"}, {Name: "l", ID: "0123456789abcdef"}},
			Sealing: new(catalog.Sealing),
		}} {
			row.Refs = declared.Refs()
			refs := appendRefs(nil, declared)
			rec := appendRow(nil, &row, refs)
			got, err := decodeRow(rec)
			if err != nil || fmt.Sprint(*got) != fmt.Sprint(row) || !got.Stamp.SameStat(row.Stamp) {
				t.Errorf("%+v became %+v, %v", row, got, err)
			}
			if got, err := rowRefs(rec); err != nil || !bytes.Equal(got, refs) {
				t.Errorf("the refs of %+v are %q, want %q, %v", row, got, refs, err)
			}
		}
	}
	warned := catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: when, Inode: 1, Hash: [32]byte{9}}, Warned: true}
	if got, err := decodeRow(appendRow(nil, &warned, []byte{0})); err != nil || !got.Warned || !got.Stamp.SameStat(warned.Stamp) || got.Stamp.Hash != noHash {
		t.Errorf("%+v became %+v, %v", warned, got, err)
	}
	old := catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: when, Inode: 1, Hash: [32]byte{9}}}
	rec := appendRow(nil, &old, appendRefs(nil, &catalog.Declared{Keys: []catalog.Key{{Name: "k"}}}))
	if got, err := decodeRow(rec); err != nil || got.Stamp != (catalog.Stamp{}) {
		t.Errorf("a file whose key's id nobody knows need not be read again: %+v, %v", got, err)
	}
	s := &catalog.Sealing{Recipients: []string{"a", "b"}, Require: true}
	if got, err := decodeSealing(appendSealing(nil, s)); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v became %+v, %v", s, got, err)
	}
}

// TestRowOfAnEarlierRelease reads a row from before Stamp.Changed existed: everything else is kept, and its stamp
// matches no file, so the file is hashed once.
func TestRowOfAnEarlierRelease(t *testing.T) {
	when := time.Unix(1_700_000_000, 123).UTC()
	refs := appendRefs(nil, &catalog.Declared{Projects: []catalog.ProjectConfig{{Project: catalog.Project{Slug: "p", ID: 2}}}})
	e := encoder{[]byte{recordVersion}}
	stamp := func(size int64) {
		e.int(size)
		e.instant(when)
		e.uint(7)
		e.raw(bytes.Repeat([]byte{9}, 32))
	}
	stamp(5)
	e.uint(1)
	e.string("x.html")
	stamp(6)
	e.raw(refs)
	got, err := decodeRow(e.b)
	want := catalog.Stamp{Size: 5, ModTime: when, Inode: 7, Hash: [32]byte(bytes.Repeat([]byte{9}, 32))}
	if err != nil || got.Stamp != want || len(got.Deps) != 1 || got.Deps[0].Stamp.Size != 6 || len(got.Refs) != 1 || got.Refs[0].Name != "p" {
		t.Fatalf("%+v, %v", got, err)
	}
	now := want
	if now.Changed = when; got.Stamp.SameStat(now) {
		t.Error("its stamp passes for that of a file")
	}
	if left, err := rowRefs(e.b); err != nil || !bytes.Equal(left, refs) {
		t.Errorf("its refs are %q, %v", left, err)
	}
}

// TestFieldsOfAnEarlierRelease reads a record from before its noun got another attribute.
func TestFieldsOfAnEarlierRelease(t *testing.T) {
	s := catalog.ServiceSettings{MailEnabled: true}
	all := s.Fields()
	var e encoder
	e.fields(all[:len(all)-1])
	got := catalog.NewServiceSettings()
	d := decoder{s: string(e.b)}
	d.fields(got.Fields())
	if d.err() != nil || !got.MailEnabled || got.AuditRetentionDays != 90 {
		t.Errorf("%+v, %v", got, d.err())
	}
}

// FuzzDecode feeds damaged records to every decoder: an error is fine, a panic or a giant allocation is not.
func FuzzDecode(f *testing.F) {
	p := catalog.ProjectConfig{SMTP: new(catalog.SMTPConfig)}
	f.Add(appendProject(nil, &p))
	f.Add(appendDomain(nil, &catalog.Domain{Name: "a.example"}))
	f.Add(appendTemplate(nil, &catalog.Template{Code: "A"}))
	f.Add(appendKey(nil, &catalog.Key{Projects: []string{"a"}}))
	f.Add(appendRow(nil, &catalog.FileRow{Deps: make([]catalog.Dep, 1)}, appendRefs(nil, &catalog.Declared{Keys: make([]catalog.Key, 2)})))
	f.Add(appendDefaults(nil, &catalog.Defaults{Service: &p.Service, Auth: &p.Auth}))
	f.Add(appendSealing(nil, &catalog.Sealing{Recipients: []string{"age1"}}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p catalog.ProjectConfig
		if decodeProject(&p, 1, b) == nil {
			again := appendProject(nil, &p)
			var q catalog.ProjectConfig
			if err := decodeProject(&q, 1, again); err != nil || !reflect.DeepEqual(p, q) {
				t.Errorf("%+v became %+v, %v", p, q, err)
			}
		}
		_ = decodeProjectOnly(&p.Project, 1, b)
		_ = decodeDomain(new(catalog.Domain), b)
		_ = decodeTemplate(new(catalog.Template), b)
		_ = decodeKey(new(catalog.Key), b)
		_, _ = decodeRow(b)
		_, _ = rowRefs(b)
		_, _, _ = unpack(b)
		_, _ = decodeDefaults(b)
		_, _ = decodeSealing(b)
		_ = storedSlug(b)
		_ = domainRef(b)
		_ = storedName(b)
	})
}
