package dcv_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
)

// Programs get the times of the API, lists where nothing is known, and null for what never happened.
func TestViewJSON(t *testing.T) {
	got, err := json.Marshal(dcv.View{})
	const empty = `{"ready":false,"ownership":{"state":"","since":null,"spreading":false,"misses":0},` +
		`"pointing":{"state":"","since":null,"addresses":[]},` +
		`"certificate":{"state":"","since":null,"issuer":null,"expiresAt":null},` +
		`"records":[],"hints":[],"checkedAt":null,"nextCheckAt":null}`
	if err != nil || string(got) != empty {
		t.Errorf("the empty view: %s, %v", got, err)
	}
	at := time.Date(2026, 11, 24, 9, 30, 0, 123456000, time.UTC)
	east := at.In(time.FixedZone("", 3*3600))
	issuer, refused := "R11", "REFUSED"
	v := dcv.View{Ready: true,
		Ownership:   dcv.OwnershipView{State: "proven", Since: &at, Spreading: true, Misses: 2},
		Pointing:    dcv.PointingView{State: "here", Since: &at, Addresses: []string{"203.0.113.4"}},
		Certificate: dcv.CertificateView{State: "good", Since: &at, Issuer: &issuer, ExpiresAt: &at},
		Records: []dcv.RecordView{{Purpose: "ownership", Type: "TXT", Name: "_x.acme.example", Host: "_x", Value: "token=a expiry=never",
			Alternative: true, Found: []dcv.FoundView{{Server: "ns1.acme.example", Values: []string{"b"}, Error: &refused, At: at}}}},
		Hints:     []dcv.Hint{{Code: "PROXIED", Message: "m", Line: "l"}},
		CheckedAt: &at, NextCheckAt: &at}
	text, err := json.Marshal(&v)
	if err != nil {
		t.Fatal(err)
	}
	var back dcv.View
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
