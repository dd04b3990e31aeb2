package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
		case **bool:
			if *v = nil; r.IntN(2) == 1 {
				b := r.IntN(2) == 1
				*v = &b
			}
		case *catalog.Secret:
			*v = catalog.Secret{Source: catalog.SecretSource(r.IntN(5)), Ref: text()}
		case *[]string:
			*v = nil
			for range r.IntN(3) {
				*v = append(*v, text())
			}
		case *[]catalog.Label:
			*v = nil
			for range r.IntN(3) {
				*v = append(*v, catalog.Label{Name: text(), Value: text()})
			}
		case *catalog.Locales:
			*v = nil
			for range r.IntN(3) {
				*v = append(*v, catalog.Locale{Tag: text(), SubjectTemplate: text(), BodyHTML: text(), BodyText: text()})
			}
		default:
			panic("a field of a type that is not randomized")
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
	t.Parallel()
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
		rec := encodeProject(&p)
		setRecordTimes(rec, when, when.Add(time.Second))
		same := decodeProject(&gotP, rec) == nil && reflect.DeepEqual(p, gotP)
		var only catalog.Project
		_, err := decodeProjectOnly(&only, rec)
		same = same && err == nil && reflect.DeepEqual(only, p.Project)

		d := catalog.Domain{ID: 3, UUID: randomUUID(r), ProjectID: 4, Name: "a.example", CreatedAt: when, UpdatedAt: when}
		randomize(r, d.Fields())
		var gotD catalog.Domain
		domain := newRecord(d.UUID, &d)
		setRecordTimes(domain, when, when)
		projectCopy, err := decodeDomain(&gotD, append(domain, rec...))
		same = same && err == nil && reflect.DeepEqual(d, gotD) && bytes.Equal(projectCopy, rec)

		x := catalog.Template{ID: 3, UUID: randomUUID(r), Code: "X", CreatedAt: when, UpdatedAt: when}
		randomize(r, x.Fields())
		var gotX catalog.Template
		template := newRecord(x.UUID, &x)
		setRecordTimes(template, when, when)
		same = same && decodeTemplate(&gotX, template) == nil && reflect.DeepEqual(x, gotX)

		defaults := catalog.Defaults{Service: &p.Service}
		var gotDefaults catalog.Defaults
		return same && decode(encode(&defaults), &gotDefaults) == nil && reflect.DeepEqual(defaults, gotDefaults)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestKeysAndRowsRoundTrip(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, k := range []catalog.Key{
		{Name: "n", ID: "abcdef", Hash: [32]byte{1, 2}, Allow: catalog.MayRead | catalog.MaySecrets},
		{Name: "n", Projects: []string{}, ExpiresAt: when},
		{Name: "n", Projects: []string{"a", "b"}, ExpiresAt: when},
	} {
		var got catalog.Key
		if err := decodeKey(&got, encodeKey(&k)); err != nil || !reflect.DeepEqual(k, got) {
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
			got, err := decodeRow(encodeRow(&row, row.Refs))
			if err != nil || fmt.Sprint(*got) != fmt.Sprint(row) || !got.Stamp.SameStat(row.Stamp) {
				t.Errorf("%+v became %+v, %v", row, got, err)
			}
		}
	}
	warned := catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: when, Inode: 1, Hash: [32]byte{9}}, Warned: true}
	if got, err := decodeRow(encodeRow(&warned, nil)); err != nil || !got.Warned || !got.Stamp.SameStat(warned.Stamp) || got.Stamp.Hash != [32]byte{} {
		t.Errorf("%+v became %+v, %v", warned, got, err)
	}
	far := catalog.FileRow{Stamp: catalog.Stamp{ModTime: time.Unix(1<<50, 0), Hash: [32]byte{9}}}
	if got, err := decodeRow(encodeRow(&far, nil)); err != nil || !got.Stamp.SameStat(far.Stamp) {
		t.Errorf("a file of the far future: %+v became %+v, %v", far, got, err)
	}
	s := catalog.Sealing{Recipients: []string{"a", "b"}, Require: true}
	var got catalog.Sealing
	if err := decode(encode(&s), &got); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v became %+v, %v", s, got, err)
	}
}

// describe lists the fields of a type, with those of the types in it.
func describe(w io.Writer, t reflect.Type) {
	fmt.Fprintln(w, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(w, t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("cbor") != "-" {
				fmt.Fprintln(w, f.Name, f.Tag)
				describe(w, f.Type)
			}
		}
	}
}

// TestLayout fails when a stored noun gets, loses or moves a field. That is a new layout: raise Format, and see "Key
// layout" in doc.go for what that takes. Then change the hash here; a new name alone needs no new version, nor does
// an optional field (omitempty) of a noun without ",toarray": the records without it stay as they are.
func TestLayout(t *testing.T) {
	t.Parallel()
	h := sha256.New()
	for _, v := range []any{catalog.Project{}, projectSettings{}, catalog.Domain{}, catalog.Template{}, keyRecord{}, fileRecord{},
		catalog.Defaults{}, catalog.Sealing{}, catalog.Webhook{}, catalog.Login{}, catalog.Inbound{}, Counts{}} {
		describe(h, reflect.TypeOf(v))
	}
	const want = "13 02c2f8876b7b551d"
	if got := fmt.Sprintf("%d %x", Format, h.Sum(nil)[:8]); got != want {
		t.Errorf("the layout is %q, want %q: a stored noun has changed. Raise Format (store.go), see \"Key layout\" in doc.go, "+
			"and put the hash here", got, want)
	}
}

// TestDamagedRecords: a record of another version, with another number of fields, cut off, or with bytes left over is an
// error.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	good := newRecord(catalog.UUID{}, &catalog.Template{Code: "A", Name: "a name"})
	if err := decodeTemplate(new(catalog.Template), good); err != nil {
		t.Fatal(err)
	}
	f := func(what string, rec []byte) {
		t.Helper()
		if err := decodeTemplate(new(catalog.Template), rec); !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range good {
		f(fmt.Sprint("the first ", n, " bytes"), good[:n])
	}
	f("a byte too many", append(bytes.Clone(good), 0))
	other := bytes.Clone(good)
	other[0]++
	f("another version", other)
	f("a domain", newRecord(catalog.UUID{}, new(catalog.Domain)))
}

// FuzzDecode feeds damaged records to every decoder: an error is fine, a panic or a giant allocation is not.
func FuzzDecode(f *testing.F) {
	p := catalog.ProjectConfig{SMTP: new(catalog.SMTPConfig)}
	f.Add(encodeProject(&p))
	f.Add(newRecord(catalog.UUID{}, &catalog.Domain{Name: "a.example"}))
	f.Add(newRecord(catalog.UUID{}, &catalog.Template{Code: "A"}))
	f.Add(encodeKey(&catalog.Key{Projects: []string{"a"}}))
	f.Add(encodeRow(&catalog.FileRow{Deps: make([]catalog.Dep, 1)}, make([]catalog.Ref, 2)))
	f.Add(encode(&catalog.Defaults{Service: &p.Service, Auth: &p.Auth}))
	f.Add(encode(&catalog.Sealing{Recipients: []string{"age1"}}))
	f.Add(encode(&Counts{Projects: 1}))
	f.Add(encode(&catalog.Webhook{Name: "crm", Secrets: make([]catalog.Secret, 2), Events: []string{"*"}}))
	f.Add(encode(&catalog.Login{Name: "company", Rules: []catalog.LoginRule{{Claim: "groups"}, {Projects: []string{"a"}}}}))
	f.Add(encode(&catalog.Inbound{Name: "ses", Secrets: make([]catalog.Secret, 2), Projects: []string{"a"}}))
	f.Add([]byte{recordVersion, 0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p catalog.ProjectConfig
		if decodeProject(&p, b) == nil {
			var q catalog.ProjectConfig
			again := encodeProject(&p)
			setRecordTimes(again, p.Project.CreatedAt, p.Project.UpdatedAt)
			if err := decodeProject(&q, again); err != nil || !reflect.DeepEqual(p, q) {
				t.Errorf("%+v became %+v, %v", p, q, err)
			}
		}
		_, _ = decodeProjectOnly(&p.Project, b)
		_, _ = decodeDomain(new(catalog.Domain), b)
		_ = decodeTemplate(new(catalog.Template), b)
		_ = decodeKey(new(catalog.Key), b)
		_, _ = decodeRow(b)
		_ = decode(b, new(catalog.Defaults))
		_ = decode(b, new(catalog.Sealing))
		_ = decode(b, new(Counts))
		_ = decode(b, new(catalog.Webhook))
		_ = decode(b, new(catalog.Login))
		_ = decode(b, new(catalog.Inbound))
	})
}
