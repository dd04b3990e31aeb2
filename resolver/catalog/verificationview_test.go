package catalog_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// Programs get the times of the API, and read them back.
func TestViewJSON(t *testing.T) {
	moment := time.Date(2026, 11, 24, 9, 30, 0, 123456000, time.UTC)
	at := catalog.JSONMoment{Time: moment}
	east := catalog.JSONMoment{Time: moment.In(time.FixedZone("", 3*3600))}
	issuer, refused := "R11", "REFUSED"
	v := catalog.VerificationView{Ready: true,
		Ownership:   catalog.OwnershipView{State: "proven", Since: &at, Spreading: true, Misses: 2},
		Pointing:    catalog.PointingView{State: "here", Since: &at, Addresses: []string{"203.0.113.4"}},
		Certificate: catalog.CertificateView{State: "good", Since: &at, Issuer: &issuer, ExpiresAt: &at},
		Records: []catalog.RecordView{{Purpose: "ownership", Type: "TXT", Name: "_x.acme.example", Host: "_x", Value: "token=a expiry=never",
			Alternative: true, Found: []catalog.FoundView{{Server: "ns1.acme.example", Values: []string{"b"}, Error: &refused, At: at}}}},
		Hints:     []catalog.VerificationHint{{Code: "PROXIED", Message: "m", Line: "l"}},
		CheckedAt: &at, NextCheckAt: &at}
	text, err := json.Marshal(&v)
	if err != nil {
		t.Fatal(err)
	}
	var back catalog.VerificationView
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%s\nis read back as %+v, %v", text, back, err)
	}
	v.CheckedAt = &east
	if again, err := json.Marshal(&v); err != nil || string(again) != string(text) {
		t.Errorf("another zone: %s, %v; want %s", again, err, text)
	}
	if err := json.Unmarshal([]byte(`{"checkedAt":"yesterday"}`), &back); err == nil {
		t.Error("a time that is none is taken")
	}
}
