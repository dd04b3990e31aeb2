package cluster

import (
	"fmt"

	"github.com/nats-io/nkeys"
)

// NewEdgeKey makes the nkey of an edge: the public half for its block in the files, and the seed for --edge-key, which
// is secret.
func NewEdgeKey() (public, seed string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("make an nkey: %w", err)
	}
	defer pair.Wipe()
	public, err = pair.PublicKey()
	if err != nil {
		return "", "", fmt.Errorf("make an nkey: %w", err)
	}
	secret, err := pair.Seed()
	if err != nil {
		return "", "", fmt.Errorf("make an nkey: %w", err)
	}
	return public, string(secret), nil
}
