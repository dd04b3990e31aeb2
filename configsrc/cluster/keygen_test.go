package cluster_test

import (
	"testing"

	"github.com/nats-io/nkeys"

	"fingerpost/configsrc/cluster"
	"fingerpost/resolver/catalog"
)

// TestEdgeKeys: the files accept exactly the public keys of users, as the library makes them.
func TestEdgeKeys(t *testing.T) {
	for range 200 {
		public, seed, err := cluster.NewEdgeKey()
		if err != nil {
			t.Fatal(err)
		}
		if !catalog.IsUserKey(public) {
			t.Errorf("%s is refused", public)
		}
		if catalog.IsUserKey(seed) {
			t.Error("a seed is taken for a public key")
		}
		bad := []byte(public)
		bad[20] ^= 1
		if got, want := catalog.IsUserKey(string(bad)), nkeys.IsValidPublicUserKey(string(bad)); got != want {
			t.Errorf("%s: %v, the library says %v", bad, got, want)
		}
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := account.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "U", public, public + "A", "ü"} {
		if catalog.IsUserKey(text) {
			t.Errorf("%q is accepted", text)
		}
	}
}
