package hcledit_test

import (
	"reflect"
	"testing"
	"time"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A key that AddKey writes is decoded as it was, and a rotation and a removal leave the comments of a person alone.
func TestKeyEdits(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Time{{}, time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2031, 1, 2, 3, 4, 5, 678, time.UTC)} {
		for _, projects := range [][]string{nil, {"acme", "other"}} {
			k := catalog.Key{Name: "web", Allow: catalog.MayWrite | catalog.MaySecrets, Projects: projects, ExpiresAt: expires}
			k.Renew()
			src, err := hcledit.AddKey([]byte("# The people on call know why.\n"), &k)
			if err != nil {
				t.Fatal(err)
			}
			declares(t, src, k)
			r, err := k.Rotate(time.Now(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if src, err = hcledit.RotateKey(src, "web", &r); err != nil {
				t.Fatal(err)
			}
			declares(t, src, r.Old, r.New)
			if src, err = hcledit.RemoveKey(src, r.Old.Name); err != nil {
				t.Fatal(err)
			}
			declares(t, src, r.New)
			if want := "# The people on call know why.\n\n" + hcledit.KeyBlock(&r.New); string(src) != want {
				t.Errorf("got %s, want %s", src, want)
			}
		}
	}
}

func declares(t *testing.T, src []byte, want ...catalog.Key) {
	t.Helper()
	r, ds := hclfile.Decode("keys.hcl", src, hclfile.Options{})
	if ds.HasErrors() || !reflect.DeepEqual(r.Declared.Keys, want) {
		t.Errorf("%s declares %+v, want %+v: %v", src, r.Declared.Keys, want, ds)
	}
}
